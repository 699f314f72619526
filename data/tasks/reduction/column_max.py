# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 3
ROWS = 131
COLS = 71


class Model(nn.Module):
    """The largest element of each column of a batch of matrices."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.amax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    # All far below zero: a maximum that starts at zero is wrong everywhere.
    return [torch.randn(BATCH, ROWS, COLS) - 8.0]


def get_init_inputs() -> list[object]:
    return []
