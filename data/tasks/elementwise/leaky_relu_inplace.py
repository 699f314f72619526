# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

ROWS = 67
COLS = 389
NEGATIVE_SLOPE = 0.02


class Model(nn.Module):
    """Leaky ReLU that overwrites its input and returns it."""

    def __init__(self, negative_slope: float) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu_(x, self.negative_slope)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    return [NEGATIVE_SLOPE]
