# SPDX-License-Identifier: Apache-2.0
# id: F23
# task: elementwise/swish
# backend: both
# would gain: cudaMemcpyFromSymbol brings to the host what a kernel wrote to a device variable
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>
#include <vector>

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
  std::vector<float> host(n);
  cudaMemcpyFromSymbol(host.data(), buffer, n * sizeof(float));
  for (int i = 0; i < n; ++i) host[i] = host[i] / (1.0f + std::exp(-host[i]));
  cudaMemcpyToSymbol(buffer, host.data(), n * sizeof(float));
  store_kernel<<<(n + 255) / 256, 256>>>(to, n);
  return out;
}
"""

ext = load_inline(
    name="swish_f23",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
