# SPDX-License-Identifier: Apache-2.0
# What it would gain: infra, or the next candidate of the same device process hangs or is charged: an endless kernel on several streams, and the host process ends by itself at once
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
import os

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
__device__ volatile int never;
__global__ void endless(float* y) { while (!never) { __nanosleep(100); } y[0] = never; }
__global__ void endless_busy(float* y) { float v = threadIdx.x; while (!never) { v = v * 1.0001f + 1.0f; } y[1] = v; }
void hang() {
  static float* p; cudaMalloc(&p, 64);
  for (int i = 0; i < 40; ++i) {
    cudaStream_t s; cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -5);
    endless<<<1, 32, 0, s>>>(p);
    endless_busy<<<132, 1024, 40000, s>>>(p);
  }
  endless<<<1, 32>>>(p);
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  swish<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(name="a18_endless_then_exit", cpp_sources="torch::Tensor run(torch::Tensor x); void hang();", cuda_sources=source, functions=['run', 'hang'])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = ext.run(x.contiguous())
        if self.calls == 25:      # by then it is being timed
            ext.hang()
            os._exit(0)
        return y
