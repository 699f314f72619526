# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 45
COLS = 777


class Model(nn.Module):
    """Where each row has its largest element (the first one, where there are several)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    # Few distinct values, so that ties are common; all below zero.
    return [-torch.ceil(400.0 * torch.rand(ROWS, COLS))]


def get_init_inputs() -> list[object]:
    return []
