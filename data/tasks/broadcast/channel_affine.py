# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 5
CHANNELS = 13
HEIGHT = 29
WIDTH = 31


class Model(nn.Module):
    """Scales and shifts each channel of an image batch by learned numbers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(1.0 + 0.5 * torch.randn(channels))
        self.shift = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale.view(1, -1, 1, 1) + self.shift.view(1, -1, 1, 1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [CHANNELS]
