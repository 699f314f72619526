# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

TOKENS = 37
FEATURES = 58
HIDDEN = 77


class Model(nn.Module):
    """The SwiGLU block of a transformer: two projections, a gate, and one projection back."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, FEATURES)]


def get_init_inputs() -> list[object]:
    return [FEATURES, HIDDEN]
