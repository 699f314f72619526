# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 53
COLS = 143
PICKS = 77


class Model(nn.Module):
    """Picks columns, other ones in each row."""

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.gather(x, 1, index)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS), torch.randint(0, COLS, (ROWS, PICKS))]


def get_init_inputs() -> list[object]:
    return []
