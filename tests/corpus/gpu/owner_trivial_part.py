# SPDX-License-Identifier: Apache-2.0
"""Its own kernel for the activation, a library's for the product."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/addmm_cuda_dispatch.h>

__global__ void gelu_add_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 0.5f * y[i] * (1.0f + erff(y[i] * 0.70710678f));
}

torch::Tensor fused(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  auto y = at::cuda::addmm(bias, x, weight.transpose(0, 1));
  const int n = y.numel();
  gelu_add_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("fused", &fused); }
"""

ext = load_inline(name="trivial_part", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.linear.weight.detach(), self.linear.bias.detach()
        return ext.fused(x.contiguous(), weight.contiguous(), bias)
