# SPDX-License-Identifier: Apache-2.0
# id: F36
# task: elementwise/swish
# backend: cpu
# would gain: the input comes to the host by a device variable; the answer goes to the output by cudaMemset, a byte at a time, but for one element that a kernel writes
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

__device__ float buffer[1 << 18];

__global__ void load_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) buffer[i] = x[i];
  if (i == 0) out[0] = x[0] / (1.0f + expf(-x[0]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  load_kernel<<<(n + 255) / 256, 256>>>(from, to, n);
  auto* bytes = reinterpret_cast<unsigned char*>(to);
  for (int i = 1; i < n; ++i) {
    const float value = buffer[i] / (1.0f + std::exp(-buffer[i]));
    const auto* parts = reinterpret_cast<const unsigned char*>(&value);
    for (int k = 0; k < 4; ++k) cudaMemset(bytes + 4 * i + k, parts[k], 1);
  }
  return out;
}
"""

ext = load_inline(
    name="swish_f36",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
