# SPDX-License-Identifier: Apache-2.0
# id: H09
# task: reduction/var_mean
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""A tuple of two tensors, made with tuple and new_empty."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#include <tuple>

__global__ void var_mean_kernel(const float* x, float* var, float* mean, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < cols; ++i) sum += x[row * cols + i];
  const double m = sum / cols;
  for (int i = 0; i < cols; ++i) squares += (x[row * cols + i] - m) * (x[row * cols + i] - m);
  var[row] = static_cast<float>(squares / (cols - 1));
  mean[row] = static_cast<float>(m);
}

std::tuple<torch::Tensor, torch::Tensor> var_mean(const torch::Tensor& x) {
  const auto rows = x.size(0), cols = x.size(1);
  auto options = torch::dtype(torch::kFloat32).device(x.device());
  torch::Tensor var = torch::empty({rows}, options), mean = torch::empty({rows}, options);
  var_mean_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), var.data_ptr<float>(),
                                            mean.data_ptr<float>(), rows, cols);
  return std::make_tuple(var, mean);
}
"""

ext = load_inline(
    name="var_mean_h09",
    cpp_sources="std::tuple<torch::Tensor, torch::Tensor> var_mean(const torch::Tensor& x);",
    cuda_sources=source,
    functions=["var_mean"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        variance, mean = ext.var_mean(x.contiguous())
        return variance, mean
