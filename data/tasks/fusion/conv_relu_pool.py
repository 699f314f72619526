# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

BATCH = 3
IN_CHANNELS = 4
OUT_CHANNELS = 6
HEIGHT = 19
WIDTH = 23
KERNEL_SIZE = 3


class Model(nn.Module):
    """A small vision block: convolution, ReLU, and 2x2 max pooling."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(F.relu(self.conv(x)), 2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [IN_CHANNELS, OUT_CHANNELS, KERNEL_SIZE]
