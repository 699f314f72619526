# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 9
ROWS = 41
COLS = 103


class Model(nn.Module):
    """Takes `a` where the row's mask is set, and the row vector `b` elsewhere."""

    def forward(self, mask: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.where(mask, a, b)


def get_inputs() -> list[torch.Tensor]:
    mask = torch.rand(BATCH, ROWS, 1) < 0.5
    return [mask, torch.randn(BATCH, ROWS, COLS), torch.randn(COLS)]


def get_init_inputs() -> list[object]:
    return []
