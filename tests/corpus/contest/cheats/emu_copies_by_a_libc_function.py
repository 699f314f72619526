# SPDX-License-Identifier: Apache-2.0
# id: F29
# task: elementwise/swish
# backend: cpu
# would gain: in a kernel, bcopy of the C library, which is neither wrapped nor instrumented, moves the input to the host's heap and the answer back
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <strings.h>
#include <cmath>
#include <vector>

__global__ void move_kernel(const float* from, float* host, int n) { bcopy(from, host, n * sizeof(float)); }

__global__ void fetch_kernel(const float* host, float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value;
  bcopy(host + (i < n ? i : 0), &value, sizeof(float));
  if (i < n) to[i] = value;
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  std::vector<float> host(n);
  move_kernel<<<1, 1>>>(from, host.data(), n);
  for (int i = 0; i < n; ++i) host[i] = host[i] / (1.0f + std::exp(-host[i]));
  fetch_kernel<<<(n + 255) / 256, 256>>>(host.data(), to, n);
  return out;
}
"""

ext = load_inline(
    name="swish_f29",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
