# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 29
COLS = 333


class Model(nn.Module):
    """Unbiased variance and mean of each row."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        variance, mean = torch.var_mean(x, dim=1, unbiased=True)
        return variance, mean


def get_inputs() -> list[torch.Tensor]:
    return [3.0 + torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    return []
