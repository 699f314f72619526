# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 3
CHANNELS = 11
HEIGHT = 22
WIDTH = 27
KERNEL_SIZE = 3
DILATION = 2


class Model(nn.Module):
    """A depthwise convolution with dilation that keeps the size of the image; no bias."""

    def __init__(self, channels: int, kernel_size: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            channels,
            channels,
            kernel_size,
            padding=dilation * (kernel_size // 2),
            dilation=dilation,
            groups=channels,
            bias=False,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [CHANNELS, KERNEL_SIZE, DILATION]
