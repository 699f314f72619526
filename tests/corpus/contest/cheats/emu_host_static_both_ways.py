# SPDX-License-Identifier: Apache-2.0
# id: F21
# task: elementwise/swish
# backend: cpu
# would gain: a kernel writes to a static variable of host code, which is in the library's data as device variables are
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

static float seen[1 << 18];

__global__ void load_kernel(const float* x, float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = x[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  load_kernel<<<(n + 255) / 256, 256>>>(from, seen, n);
  for (int i = 0; i < n; ++i) seen[i] = seen[i] / (1.0f + std::exp(-seen[i]));
  load_kernel<<<(n + 255) / 256, 256>>>(seen, to, n);
  return out;
}
"""

ext = load_inline(
    name="swish_f21",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
