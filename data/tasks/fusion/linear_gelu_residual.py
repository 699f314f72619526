# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

TOKENS = 51
FEATURES = 93


class Model(nn.Module):
    """A fully connected layer, exact GELU, and the input added back."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.gelu(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, FEATURES)]


def get_init_inputs() -> list[object]:
    return [FEATURES]
