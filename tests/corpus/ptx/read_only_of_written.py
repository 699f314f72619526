# SPDX-License-Identifier: Apache-2.0
"""Reads by __ldg what the kernel wrote before: a GPU's cache may hold the words of before."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void swish(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 1.0f + expf(-x[i]);
  __syncthreads();
  if (i < n) y[i] = x[i] / __ldg(y + i);
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  swish<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(
    name="read_only_of_written",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x.contiguous())
