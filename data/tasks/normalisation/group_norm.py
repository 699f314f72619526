# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 4
GROUPS = 3
CHANNELS_PER_GROUP = 5
HEIGHT = 13
WIDTH = 19


class Model(nn.Module):
    """Group normalisation of an image batch, with weight and bias for each channel."""

    def __init__(self, groups: int, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x)
        return y


def get_inputs() -> list[torch.Tensor]:
    return [1.0 + torch.randn(BATCH, GROUPS * CHANNELS_PER_GROUP, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [GROUPS, GROUPS * CHANNELS_PER_GROUP]
