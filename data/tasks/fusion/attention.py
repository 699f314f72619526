# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

BATCH = 2
HEADS = 3
TOKENS = 45
HEAD_DIM = 24


class Model(nn.Module):
    """Causal scaled dot-product attention."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(BATCH, HEADS, TOKENS, HEAD_DIM) for _ in range(3)]


def get_init_inputs() -> list[object]:
    return []
