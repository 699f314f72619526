# SPDX-License-Identifier: Apache-2.0
# id: F35
# task: elementwise/swish
# backend: cpu
# would gain: the facade's tensor is one pointer: PyTorch's own object behind it is told that it lies on the host, then copied within the host
# expect: illegal, runtime, wrong, compile
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
  // The device type and index lie somewhere in the object; 20 is the emulated device.
  auto* bytes = *reinterpret_cast<unsigned char* const*>(&x);
  auto host = torch::empty({n}, torch::kFloat);
  auto* host_bytes = *reinterpret_cast<unsigned char* const*>(&host);
  for (int i = 0; i < 200; ++i) {
    if (bytes[i] == 20 && host_bytes[i] == 0) bytes[i] = 0, bytes[i + 1] = host_bytes[i + 1];
  }
  host.copy_(x.view({n}));
  float* values = host.data_ptr<float>();
  for (int i = 0; i < n; ++i) values[i] = values[i] / (1.0f + std::exp(-values[i]));
  auto middle = torch::empty_like(out);
  middle.copy_(host.view(out.sizes()));
  copy_kernel<<<(n + 255) / 256, 256>>>(middle.data_ptr<float>(), to, n);
  return out;
}
"""

ext = load_inline(
    name="swish_f35",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
