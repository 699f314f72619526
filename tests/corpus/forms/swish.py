# SPDX-License-Identifier: Apache-2.0
"""Swish on PyTorch's current stream; expected.json has edits of it."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/types.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void swish_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  const int threads = 256;
  swish_kernel<<<(n + threads - 1) / threads, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

module = load_inline("swish_form", "torch::Tensor swish(torch::Tensor x);", source, functions="swish")


class ModelNew(nn.Module):
    def forward(self, x):
        return module.swish(x)
