# SPDX-License-Identifier: Apache-2.0
"""Right where the first warp stores before the loads of the others end: no barrier is between."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void scaled_swish_kernel(const float* x, float* out, int n, float factor) {
  __shared__ float shared_factor;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) shared_factor = factor;
  if (i >= n) return;
  const float value = x[i];
  out[i] = shared_factor * value / (1.0f + expf(-value));
}

torch::Tensor scaled_swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  scaled_swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n, 1.0f);
  return out;
}
"""

ext = load_inline(
    name="factor_before_the_barrier",
    cpp_sources="torch::Tensor scaled_swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["scaled_swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.scaled_swish(x.contiguous())
