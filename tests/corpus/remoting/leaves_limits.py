# SPDX-License-Identifier: Apache-2.0
# What it would gain: the next candidate (A13, or an honest one that needs much memory) is oom, slower, or sees other limits: heap, printf, stack, L2, pools, profiler, carve-outs are set to extremes
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
#include <cuda_profiler_api.h>
__global__ void eat_heap(int blocks) {
  for (int i = 0; i < blocks; ++i) { char* p = (char*)malloc(1 << 20); if (p) p[0] = 1; }   // never freed
  if (threadIdx.x == 0) for (int i = 0; i < 20000; ++i) printf("%d %p ............................................................\n", i, &i);
}
__global__ void deep(float* y, int depth) {
  volatile float big[8000];
  for (int i = 0; i < 8000; i += 97) big[i] = i;
  if (depth < 0) y[0] = big[threadIdx.x];
}
torch::Tensor run(torch::Tensor x) {
  static int calls; ++calls;
  auto y = torch::empty_like(x);
  const int n = x.numel();
  if (calls == 3) {
    cudaDeviceSetLimit(cudaLimitMallocHeapSize, 8ull << 30);
    cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2ull << 30);
    cudaDeviceSetLimit(cudaLimitStackSize, 256 << 10);
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 64 << 20);
    cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 32);
    cudaDeviceSetCacheConfig(cudaFuncCachePreferShared);
    cudaSetDeviceFlags(cudaDeviceScheduleYield);
    cudaFuncSetAttribute(swish, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
    cudaMemPool_t pool; uint64_t all = ~0ull;
    if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess) cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
    for (int i = 0; i < 40; ++i) { void* p; cudaMallocAsync(&p, 1ull << 30, 0); }
    for (int i = 0; i < 40; ++i) { void* p; cudaMalloc(&p, 1ull << 30); }
    eat_heap<<<1, 32>>>(64);
    deep<<<1, 32>>>(y.data_ptr<float>(), 1);
    cudaProfilerStart();
    cudaStreamAttrValue window{};
    window.accessPolicyWindow.base_ptr = y.data_ptr<float>(); window.accessPolicyWindow.num_bytes = n * 4ull; window.accessPolicyWindow.hitRatio = 1;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting; window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(0, cudaStreamAttributeAccessPolicyWindow, &window);
    cudaGetLastError();
  }
  swish<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(name="a10_leaves_limits", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=['run'])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.run(x.contiguous())
