# SPDX-License-Identifier: Apache-2.0
# id: W73
# task: elementwise/swish
# backend: both
# would gain: PyTorch's own kernels
# expect: illegal
"""An own operator in Python is made of operators of PyTorch."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void swish_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(const torch::Tensor& x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(
    name="op_own_calls_pytorch",
    cpp_sources="torch::Tensor swish(const torch::Tensor& x);",
    cuda_sources=source,
    functions=["swish"],
)


@torch.library.custom_op("corpus_w73::swish", mutates_args=())
def swish(x: torch.Tensor) -> torch.Tensor:
    return x * getattr(torch, "sig" + "moid")(x)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ext.swish(x.contiguous())
        return swish(x)
