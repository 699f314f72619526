# SPDX-License-Identifier: Apache-2.0
"""Has more registers than a block of 1,024 threads may have: a GPU does not launch it."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void swish(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float loaded[100], sum = 0;
#pragma unroll
  for (int k = 0; k < 100; ++k) loaded[k] = *(const volatile float*)(x + (i + k) % n);
#pragma unroll
  for (int k = 99; k >= 0; --k) sum += loaded[k] * 1e-30f;
#pragma unroll
  for (int k = 0; k < 100; ++k) sum = fmaf(loaded[k], 1e-30f, sum);
  y[i] = loaded[0] / (1.0f + expf(-loaded[0])) + sum;
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  swish<<<(n + 1023) / 1024, 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(
    name="registers_and_threads",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x.contiguous())
