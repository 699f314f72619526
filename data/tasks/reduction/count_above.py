# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 51
COLS = 459
THRESHOLD = 0.25


class Model(nn.Module):
    """How many elements of each row lie above a threshold."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x > self.threshold).sum(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS)]


def get_init_inputs() -> list[object]:
    return [THRESHOLD]
