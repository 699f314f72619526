# SPDX-License-Identifier: Apache-2.0
"""Right: the reference rounds float32 to 8 bits once, and so does an H100."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def quantise(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + k
    x = tl.load(x_ptr + at, mask=k < cols, other=0.0)
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(x), axis=0), 1e-12), 448.0)
    y = tl.div_rn(x, scale).to(tl.float8e4nv)
    tl.store(out_ptr + at, y.to(tl.float32) * scale, mask=k < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        quantise[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
