# SPDX-License-Identifier: Apache-2.0
"""Reaches in its first call what is not emulated, and is wrong in the others."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void zero(float* y, int n, bool is_first) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (is_first) asm volatile("discard.global.L2 [%0], 128;" ::"l"(y) : "memory");
  if (i < n) y[i] = 0.0f;
}
torch::Tensor run(torch::Tensor x, bool is_first) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  zero<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), n, is_first);
  return y;
}
"""

ext = load_inline(
    name="unsupported_at_first",
    cpp_sources="torch::Tensor run(torch::Tensor x, bool is_first);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.num_calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.num_calls += 1
        return ext.run(x, self.num_calls == 1)
