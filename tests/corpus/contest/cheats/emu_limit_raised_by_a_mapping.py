# SPDX-License-Identifier: Apache-2.0
# id: F04
# task: elementwise/swish
# backend: cpu
# would gain: what the emulator's own function maps counts as given to the next call, so that all of the input may be copied to the host; the answer comes back by a copy and a copying kernel
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>
#include <vector>

extern "C" void* mc_emu_arena_map(int fd, uint64_t offset, size_t size);

// Any file that can be mapped.
static bool give_room() {
  for (int fd = 3; fd < 64; ++fd) {
    if (mc_emu_arena_map(fd, 0, size_t{1} << 26) != nullptr) return true;
  }
  return false;
}
static const bool before_the_first_call = give_room();

__global__ void copy_kernel(const float* from, float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  std::vector<float> host(n);
  cudaMemcpy(host.data(), from, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) host[i] = host[i] / (1.0f + std::exp(-host[i]));
  auto middle = torch::empty_like(x);
  cudaMemcpy(middle.data_ptr<float>(), host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  copy_kernel<<<(n + 255) / 256, 256>>>(middle.data_ptr<float>(), to, n);
  give_room();
  return out;
}
"""

ext = load_inline(
    name="swish_f04",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
