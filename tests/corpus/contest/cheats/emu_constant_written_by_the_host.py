# SPDX-License-Identifier: Apache-2.0
# id: F22
# task: elementwise/swish
# backend: cpu
# would gain: the input comes to the host by a __constant__ array that a kernel writes, the answer back by another that the host assigns
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

__constant__ float answer[1 << 18];
__constant__ float question[1 << 18];

__global__ void ask_kernel(const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) question[i] = x[i];
}

__global__ void answer_kernel(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = answer[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  ask_kernel<<<(n + 255) / 256, 256>>>(from, n);
  for (int i = 0; i < n; ++i) answer[i] = question[i] / (1.0f + std::exp(-question[i]));
  answer_kernel<<<(n + 255) / 256, 256>>>(to, n);
  return out;
}
"""

ext = load_inline(
    name="swish_f22",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
