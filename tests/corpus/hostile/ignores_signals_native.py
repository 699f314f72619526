# SPDX-License-Identifier: Apache-2.0
"""Ignores all signals in C++ and spins."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <csignal>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  for (int number = 1; number < 32; ++number) std::signal(number, SIG_IGN);
  volatile bool is_over = false;
  while (!is_over) {
  }
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_ignores_signals_native",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
