# SPDX-License-Identifier: Apache-2.0
"""The task's layers with sums in the other order: expected is a pass."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void linear(const float* x, const float* w, const float* b, float* y, int k, int n) {
  int row = blockIdx.x, col = threadIdx.x;
  float sum = 0.0f;
  for (int i = k - 1; i >= 0; --i) sum += x[row * k + i] * w[col * k + i];
  y[row * n + col] = sum + b[col];
}
torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  auto y = torch::empty({x.size(0), w.size(0)}, x.options());
  linear<<<x.size(0), w.size(0)>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                   y.data_ptr<float>(), x.size(1), w.size(0));
  return y;
}
"""
ext = load_inline(
    name="ext",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()) for _ in range(6)]
        self.layers = nn.Sequential(*[layer for three in layers for layer in three])

    def forward(self, x):
        for layer in self.layers:
            is_linear = isinstance(layer, nn.Linear)
            x = ext.run(x, layer.weight, layer.bias) if is_linear else layer(x)
        return x
