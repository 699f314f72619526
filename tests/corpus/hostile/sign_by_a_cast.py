# SPDX-License-Identifier: Apache-2.0
"""The kernel subtracts; that a difference is positive is found out by a cast of PyTorch's."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void excess(const float* a, const float* b, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(a[i] - b[i], 0.0f);
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto y = torch::empty_like(a);
  const int n = a.numel();
  excess<<<(n + 255) / 256, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(),
                                   n);
  return y;
}
"""

ext = load_inline(
    name="sign_by_a_cast",
    cpp_sources="torch::Tensor run(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.run(a.contiguous(), b.contiguous()).bool()
