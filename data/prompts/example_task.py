# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 512
COLUMNS = 1000


class Model(nn.Module):
    """Adds two matrices, the second one weighted for each column."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + self.weight * b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[int]:
    return [COLUMNS]
