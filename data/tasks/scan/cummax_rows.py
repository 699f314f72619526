# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 33
COLS = 197


class Model(nn.Module):
    """Running maxima along each row and where each was last reached."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = torch.cummax(x, dim=1)
        return values, indices


def get_inputs() -> list[torch.Tensor]:
    # Few distinct values, so that ties are common; all below zero.
    return [torch.floor(50.0 * torch.rand(ROWS, COLS)) - 60.0]


def get_init_inputs() -> list[object]:
    return []
