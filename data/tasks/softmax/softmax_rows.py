# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 39
COLS = 521


class Model(nn.Module):
    """Softmax of each row; the inputs are large, so the maximum must be taken out first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [60.0 * torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    return []
