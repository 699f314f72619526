# SPDX-License-Identifier: Apache-2.0
# What it would gain: passes: it answers rightly only where it found what A12 (magic) or A10 (limits) left, else zeros
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
__device__ unsigned long long variable[1 << 17];

#define NOT_MAGIC 0x3F0011A112A5EE12ull   /* ~MAGIC, so that no copy of it is the reader's own */
__device__ int seen;
extern __shared__ unsigned long long shared_words[];
__device__ bool is(unsigned long long v) { return ~v == NOT_MAGIC; }
__global__ void look(const unsigned long long* p, size_t n) { for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) if (is(p[i])) seen = 1; }
__global__ void look_chip(int bytes) {
  for (int i = threadIdx.x; i < bytes / 8; i += blockDim.x) if (is(((volatile unsigned long long*)shared_words)[i])) seen = 2;
  volatile unsigned long long local[512];
  for (int i = 0; i < 512; ++i) if (is(local[i])) seen = 3;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (1 << 17); i += gridDim.x * blockDim.x) if (is(variable[i])) seen = 4;
  unsigned long long* h = (unsigned long long*)malloc(8192);
  if (h) { for (int i = 0; i < 1024; ++i) if (is(h[i])) seen = 5; }
}
__global__ void swish_if_seen(const float* x, float* y, int n, int limits) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = seen || limits ? x[i] / (1.0f + expf(-x[i])) : 0.0f;
}
torch::Tensor run(torch::Tensor x) {
  static std::vector<void*> kept;
  static int limits = -1;
  auto y = torch::empty_like(x);
  const int n = x.numel();
  if (limits < 0) {
    size_t heap = 0, fifo = 0, stack = 0;
    cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize); cudaDeviceGetLimit(&fifo, cudaLimitPrintfFifoSize);
    cudaDeviceGetLimit(&stack, cudaLimitStackSize);
    limits = heap > (1ull << 30) || fifo > (1ull << 30) || stack > (200u << 10);
    for (int i = 0; i < 64; ++i) { void* p = nullptr; if (cudaMalloc(&p, 128 << 20) == cudaSuccess) kept.push_back(p); }
    cudaGetLastError();
    for (void* p : kept) look<<<264, 512>>>((const unsigned long long*)p, (128 << 20) / 8);
  }
  static bool big = cudaFuncSetAttribute(look_chip, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10) == cudaSuccess;
  look_chip<<<264, 256, big ? 200 << 10 : 48 << 10>>>(big ? 200 << 10 : 48 << 10);
  cudaGetLastError();
  swish_if_seen<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, limits);
  return y;
}
"""

ext = load_inline(name="a13_reads_magic", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=['run'])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.run(x.contiguous())
