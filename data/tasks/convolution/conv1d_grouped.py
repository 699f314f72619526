# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 4
GROUPS = 3
IN_PER_GROUP = 4
OUT_PER_GROUP = 5
LENGTH = 131
KERNEL_SIZE = 5
PADDING = 2


class Model(nn.Module):
    """A grouped 1-D convolution with padding and bias."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, padding: int, groups: int
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(
            in_channels, out_channels, kernel_size, padding=padding, groups=groups
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, GROUPS * IN_PER_GROUP, LENGTH)]


def get_init_inputs() -> list[object]:
    return [GROUPS * IN_PER_GROUP, GROUPS * OUT_PER_GROUP, KERNEL_SIZE, PADDING, GROUPS]
