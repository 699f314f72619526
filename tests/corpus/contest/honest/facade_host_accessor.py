# SPDX-License-Identifier: Apache-2.0
# id: H36
# task: elementwise/swish
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""A small table is made on the host by an accessor and moved to the device."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  auto table = torch::zeros({2, 3}, torch::kFloat32);
  auto view = table.accessor<float, 2>();
  for (int i = 0; i < view.size(0); ++i)
    for (int j = 0; j < view.size(1); ++j) view[i][j] = static_cast<float>(i * 10 + j);
  auto moved = table.to(x.device());
  TORCH_CHECK(moved.size(1) == 3 && table[1][2].item<float>() == 12.0f && moved.cpu()[1][0].item().toFloat() == 10.0f);
  swish_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_h36",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
