# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def weighted_add_kernel(a, b, weight, out, size, columns, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_inside = place < size
    left = tl.load(a + place, mask=is_inside)
    right = tl.load(b + place, mask=is_inside)
    factor = tl.load(weight + place % columns, mask=is_inside)
    tl.store(out + place, left + factor * right, mask=is_inside)


class ModelNew(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        size, columns = a.numel(), self.weight.numel()
        grid = (triton.cdiv(size, 1024),)
        weighted_add_kernel[grid](a, b, self.weight, out, size, columns, BLOCK=1024)
        return out
