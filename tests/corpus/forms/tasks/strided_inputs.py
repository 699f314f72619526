# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 91
COLS = 60


class Model(nn.Module):
    """Row sums of two matrices, neither of which lies in memory row by row."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.sum(dim=1) + b.sum(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(COLS, ROWS).t(), torch.randn(ROWS, 2 * COLS)[:, ::2]]


def get_init_inputs() -> list[object]:
    return []
