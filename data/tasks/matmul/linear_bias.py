# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 45
IN_FEATURES = 107
OUT_FEATURES = 69


class Model(nn.Module):
    """A fully connected layer."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, IN_FEATURES)]


def get_init_inputs() -> list[object]:
    return [IN_FEATURES, OUT_FEATURES]
