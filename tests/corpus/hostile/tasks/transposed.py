# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

BATCH = 5
ROWS = 37
COLS = 43


class Model(nn.Module):
    """Transposes each matrix."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, ROWS, COLS)]


def get_init_inputs() -> list[object]:
    return []
