# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sort_kernel(x_ptr, value_ptr, index_ptr, cols, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    x_ptr += tl.program_id(0) * cols
    value_ptr += tl.program_id(0) * cols
    index_ptr += tl.program_id(0) * cols
    column = tl.arange(0, BLOCK)
    inside = column < cols
    x = tl.load(x_ptr + column, mask=inside, other=0.0)
    rank = tl.zeros([BLOCK], dtype=tl.int32)
    for start in range(0, cols, CHUNK):
        other = start + tl.arange(0, CHUNK)
        y = tl.load(x_ptr + other, mask=other < cols, other=-float("inf"))
        before = (y[None, :] == x[:, None]) & (other[None, :] < column[:, None])
        ahead = ((y[None, :] > x[:, None]) | before) & (other[None, :] < cols)
        rank += tl.sum(ahead.to(tl.int32), axis=1)
    tl.store(index_ptr + rank, column.to(tl.int64), mask=inside)
    # The places are read in order now, by other threads than those that wrote them.
    tl.debug_barrier()
    source = tl.load(index_ptr + column, mask=inside, other=0)
    tl.store(value_ptr + column, tl.load(x_ptr + source, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.contiguous()
        rows, cols = x.shape
        values = torch.empty_like(x)
        indices = torch.empty((rows, cols), device=x.device, dtype=torch.int64)
        block = triton.next_power_of_2(cols)
        sort_kernel[(rows,)](x, values, indices, cols, BLOCK=block, CHUNK=32)
        return values, indices
