# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x_ptr, gain_ptr, out_ptr, rows, cols, eps, ROWS: tl.constexpr, COLS: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, COLS)
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    places = row[:, None] * cols + col[None, :]
    x = tl.load(x_ptr + places, mask=inside, other=0.0)
    mean_square = tl.sum(x * x, axis=1) / cols
    gain = tl.load(gain_ptr + col, mask=col < cols, other=0.0)
    y = x * tl.rsqrt(mean_square + eps)[:, None] * gain[None, :]
    tl.store(out_ptr + places, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, features: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(1.0 + 0.3 * torch.randn(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, cols = x.shape
        rms_norm_kernel[(triton.cdiv(rows, 4),)](
            x, self.gain, out, rows, cols, self.eps, ROWS=4, COLS=triton.next_power_of_2(cols)
        )
        return out
