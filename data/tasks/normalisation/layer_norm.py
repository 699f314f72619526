# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 3
TOKENS = 17
FEATURES = 333


class Model(nn.Module):
    """Layer normalisation over the last dimension, with weight and bias."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x)
        return y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, TOKENS, FEATURES)]


def get_init_inputs() -> list[object]:
    return [FEATURES]
