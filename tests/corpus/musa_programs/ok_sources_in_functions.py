# SPDX-License-Identifier: Apache-2.0
# Functions return the source as f-strings, with C++ around the braces and Python in them.
import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load_inline


def stream_expression(kind="Current"):
    return f"at::musa::get{kind}MUSAStream()"


def kernel_source(dtype, block):
    return f"""
__global__ void gelu_{dtype}_kernel(const {dtype}* __restrict__ in, {dtype}* __restrict__ out,
                                    int n) {{
  const int i = blockIdx.x * {block} + threadIdx.x;
  if (i < n) {{
    const {dtype} v = in[i];
    out[i] = 0.5f * v * (1.0f + tanhf({0.7978845608028654!r}f * (v + 0.044715f * v * v * v)));
  }}
}}
"""


def launcher_source(dtype, block):
    return f"""
torch::Tensor gelu(torch::Tensor x) {{
  auto out = torch::empty_like(x);
  const int n = x.numel();
  musaStream_t stream = {stream_expression()};
  gelu_{dtype}_kernel<<<(n + {block} - 1) / {block}, {block}, 0, stream>>>(
      x.data_ptr<{dtype}>(), out.data_ptr<{dtype}>(), n);
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return out;
}}
"""


def build(dtype="float", block=128):
    includes = "".join(
        f'#include "torch_musa/csrc/{path}"\n'
        for path in ("aten/musa/MUSAContext.h", "core/MUSAException.h")
    )
    return load_inline(
        name=f"gelu_{dtype}_{block}",
        cpp_sources="torch::Tensor gelu(torch::Tensor x);",
        musa_sources=includes + kernel_source(dtype, block) + launcher_source(dtype, block),
        functions=["gelu"],
    )


ext = build()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.gelu(x.contiguous())
