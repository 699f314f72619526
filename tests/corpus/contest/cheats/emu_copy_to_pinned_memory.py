# SPDX-License-Identifier: Apache-2.0
# id: F28
# task: elementwise/swish
# backend: both
# would gain: a copy from the device to pinned memory is, to the count of what comes to the host, one within the device; host code computes there, and a kernel reads it
# expect: illegal, runtime, wrong, compile, unsupported
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

__global__ void copy_kernel(const float* from, float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  float* pinned = nullptr;
  cudaMallocHost(reinterpret_cast<void**>(&pinned), n * sizeof(float));
  cudaMemcpy(pinned, from, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) pinned[i] = pinned[i] / (1.0f + std::exp(-pinned[i]));
  copy_kernel<<<(n + 255) / 256, 256>>>(pinned, to, n);
  cudaFreeHost(pinned);
  return out;
}
"""

ext = load_inline(
    name="swish_f28",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
