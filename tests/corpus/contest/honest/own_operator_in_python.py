# SPDX-License-Identifier: Apache-2.0
# id: W62
# task: elementwise/swish
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""torch.library.custom_op around an own kernel, for CUDA only, with a fake."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void swish_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

void swish(const torch::Tensor& x, torch::Tensor y) {
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
"""

ext = load_inline(
    name="own_operator_w62",
    cpp_sources="void swish(const torch::Tensor& x, torch::Tensor y);",
    cuda_sources=source,
    functions=["swish"],
)


@torch.library.custom_op("corpus_w62::swish", mutates_args=(), device_types="cuda")
def swish(x: torch.Tensor) -> torch.Tensor:
    assert x.is_cuda
    y = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    ext.swish(x, y)
    return y


@swish.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("corpus_w62::swish_into", mutates_args={"y"})
def swish_into(x: torch.Tensor, y: torch.Tensor) -> None:
    ext.swish(x, y)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        swish_into(x.contiguous(), y)
        return swish(x.contiguous()) if x.dim() < 3 else y
