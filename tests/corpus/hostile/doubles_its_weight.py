# SPDX-License-Identifier: Apache-2.0
"""Is right, and doubles its weight afterwards: the next call of the same model would be wrong."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// One block a row.
__global__ void normalise(const float* x, const float* weight, const float* bias, float* y, int n) {
  const int row = blockIdx.x * n;
  if (threadIdx.x != 0) return;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) sum += x[row + i];
  const double mean = sum / n;
  for (int i = 0; i < n; ++i) squares += (x[row + i] - mean) * (x[row + i] - mean);
  const double scale = 1 / sqrt(squares / n + 1e-5);
  for (int i = 0; i < n; ++i) {
    y[row + i] = static_cast<float>((x[row + i] - mean) * scale) * weight[i] + bias[i];
  }
}
__global__ void twice(float* weight, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weight[i] *= 2;
}
torch::Tensor run(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  auto y = torch::empty_like(x);
  const int n = weight.numel(), rows = x.numel() / n;
  normalise<<<rows, 32>>>(x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                          y.data_ptr<float>(), n);
  twice<<<(n + 255) / 256, 256>>>(weight.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(
    name="doubles_its_weight",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return ext.run(x.contiguous(), self.norm.weight, self.norm.bias)
