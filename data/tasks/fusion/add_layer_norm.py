# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

TOKENS = 35
FEATURES = 283


class Model(nn.Module):
    """Adds a branch to the residual stream; returns the sum and its layer normalisation."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(
        self, residual: torch.Tensor, branch: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total = residual + branch
        return total, self.norm(total)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, FEATURES), torch.randn(TOKENS, FEATURES)]


def get_init_inputs() -> list[object]:
    return [FEATURES]
