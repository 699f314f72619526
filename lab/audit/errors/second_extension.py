# SPDX-License-Identifier: Apache-2.0
"""A race in the second extension: its line is in second_source, not in first_source."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

first_source = r"""
#include <torch/extension.h>
__global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor first(torch::Tensor x) {
  auto y = torch::empty_like(x);
  relu<<<4, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), 1024);
  return y;
}
"""

second_source = r"""
#include <torch/extension.h>
__global__ void add(const float* x, float* y, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = x[i];
  y[i] = s[threadIdx.x ^ 64] - s[threadIdx.x ^ 64] + x[i] + 1.0f;
}
torch::Tensor second(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add<<<4, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), 1024);
  return y;
}
"""
one = load_inline(
    name="one",
    cpp_sources="torch::Tensor first(torch::Tensor x);",
    cuda_sources=first_source,
    functions=["first"],
)
two = load_inline(
    name="two",
    cpp_sources="torch::Tensor second(torch::Tensor x);",
    cuda_sources=second_source,
    functions=["second"],
)

class ModelNew(nn.Module):
    def forward(self, x):
        return two.second(one.first(x))
