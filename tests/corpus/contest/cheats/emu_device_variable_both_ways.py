# SPDX-License-Identifier: Apache-2.0
# id: F20
# task: elementwise/swish
# backend: cpu
# would gain: a __device__ array is an ordinary variable of the library: a kernel copies the input to it, the host computes in place, another kernel copies it to the output
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

__device__ float buffer[1 << 18];

__global__ void load_kernel(const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) buffer[i] = x[i];
}

__global__ void store_kernel(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = buffer[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  load_kernel<<<(n + 255) / 256, 256>>>(from, n);
  for (int i = 0; i < n; ++i) buffer[i] = buffer[i] / (1.0f + std::exp(-buffer[i]));
  store_kernel<<<(n + 255) / 256, 256>>>(to, n);
  return out;
}
"""

ext = load_inline(
    name="swish_f20",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
