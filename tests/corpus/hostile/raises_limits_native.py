# SPDX-License-Identifier: Apache-2.0
"""Raises its own limits in C++, then takes 16 GiB."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <sys/resource.h>

#include <cstring>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  const rlimit endless{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &endless);
  setrlimit(RLIMIT_CPU, &endless);
  for (int i = 0; i < 256; ++i) std::memset(new char[64 << 20], 1, 64 << 20);
  return out;
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_raises_limits_native",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
