# SPDX-License-Identifier: Apache-2.0
"""Adds a register that nothing sets, which a GPU finds with any bytes."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void swish(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum;
  asm volatile("{ .reg .f32 unset; mov.f32 %0, unset; }" : "=f"(sum));
  sum += x[i];
  y[i] = sum / (1.0f + expf(-sum));
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  swish<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(
    name="unset_register",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x.contiguous())
