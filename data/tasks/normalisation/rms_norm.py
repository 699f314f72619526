# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

TOKENS = 43
FEATURES = 391
EPS = 1e-3


class Model(nn.Module):
    """Root-mean-square normalisation of each token, with a learned gain."""

    def __init__(self, features: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(1.0 + 0.3 * torch.randn(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean_square = x.pow(2).mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.gain


def get_inputs() -> list[torch.Tensor]:
    # Small numbers, so that epsilon matters.
    return [0.05 * torch.randn(TOKENS, FEATURES)]


def get_init_inputs() -> list[object]:
    return [FEATURES, EPS]
