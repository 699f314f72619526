# SPDX-License-Identifier: Apache-2.0
"""Takes memory in C++ until it has 16 GiB."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cstring>
#include <vector>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  std::vector<char*> blocks;
  for (int i = 0; i < 256; ++i) {
    blocks.push_back(new char[64 << 20]);
    std::memset(blocks.back(), 1, 64 << 20);
  }
  if (blocks.size() == 256) return out;
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_memory_bomb_native",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
