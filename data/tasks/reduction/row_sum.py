# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 37
COLS = 1025


class Model(nn.Module):
    """The sum of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    return []
