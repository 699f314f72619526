# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def embedding_kernel(
    token_ptr, table_ptr, out_ptr, tokens, features, TOKENS: tl.constexpr, FEATURES: tl.constexpr
):
    place = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    token = tl.load(token_ptr + place, mask=place < tokens, other=0)
    inside = (place[:, None] < tokens) & (feature[None, :] < features)
    vector = tl.load(table_ptr + token[:, None] * features + feature[None, :], mask=inside)
    tl.store(out_ptr + place[:, None] * features + feature[None, :], vector, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, vocabulary: int, features: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, features)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens.contiguous()
        table = self.table.weight
        features = table.shape[1]
        count = tokens.numel()
        out = torch.empty((*tokens.shape, features), device=table.device, dtype=table.dtype)
        grid = (triton.cdiv(count, 16), triton.cdiv(features, 32))
        embedding_kernel[grid](tokens, table, out, count, features, TOKENS=16, FEATURES=32)
        return out
