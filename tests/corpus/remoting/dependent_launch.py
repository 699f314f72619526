# SPDX-License-Identifier: Apache-2.0
# What it would gain: time_us below 250 although each call spins 300 us: the spinning kernel lets its dependants go at once (programmatic dependent launch), and the last kernel never waits for it
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
// 600,000 cycles: at least 300 us at any clock of an H100 (at most 1.98 GHz)
__global__ void spin(long long cycles, float* keep) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
  if (cycles < 0) *keep = 1.0f;
}
__global__ void swish(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
__global__ void spin_after_trigger(long long cycles, float* keep) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
  if (cycles < 0) *keep = 1.0f;
}
__global__ void swish_early(const float* x, float* y, int n) {   // no griddepcontrol.wait
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.attrs = attributes; config.numAttrs = 1; config.stream = 0;
  config.gridDim = dim3(1); config.blockDim = dim3(1);
  TORCH_CHECK(cudaLaunchKernelEx(&config, spin_after_trigger, 600000ll, y.data_ptr<float>()) == cudaSuccess, "refused");
  config.gridDim = dim3((n + 255) / 256); config.blockDim = dim3(256);
  TORCH_CHECK(cudaLaunchKernelEx(&config, swish_early, (const float*)x.data_ptr<float>(), y.data_ptr<float>(), n) == cudaSuccess, "refused");
  TORCH_CHECK(cudaLaunchKernelEx(&config, swish_early, (const float*)x.data_ptr<float>(), y.data_ptr<float>(), n) == cudaSuccess, "refused");
  return y;
}
"""

ext = load_inline(name="a16_dependent_launch", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=['run'])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.run(x.contiguous())
