# SPDX-License-Identifier: Apache-2.0
# What it would gain: infra, a crash or hang of the device process, memory of the supervisor or of the device that stays taken, or a slow next candidate: 100,000 launches, streams, events, allocations, graphs; sizes that overflow
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
struct Large { char bytes[4000]; };
__global__ void large(const Large v, float* y) { if (v.bytes[threadIdx.x] == 77) y[0] = 1; }
torch::Tensor run(torch::Tensor x) {
  static int calls; ++calls;
  auto y = torch::empty_like(x);
  const int n = x.numel();
  float* p = y.data_ptr<float>();
  if (calls == 3) {
    const size_t sizes[] = {~0ull, ~0ull - 4095, 1ull << 63, (1ull << 63) - 1, 1ull << 48, 1ull << 32, 0x100000001ull};
    static char host[64];
    for (size_t a : sizes) {
      cudaMemsetAsync(p, 0, a, 0);
      cudaMemcpyAsync(p, p, a, cudaMemcpyDeviceToDevice, 0);
      cudaMemcpyAsync(p + 8, host, a, cudaMemcpyDeviceToDevice, 0);
      cudaMemcpyAsync((void*)(~0ull - 63), p, 64, cudaMemcpyDeviceToDevice, 0);
      void* q; cudaMalloc(&q, a); cudaMallocAsync(&q, a, 0); cudaHostAlloc(&q, a, 0);
      cudaFree((void*)a); cudaFreeAsync((void*)a, 0); cudaFreeHost((void*)a);
      for (size_t b : sizes) {
        cudaMemset2DAsync(p, a, 0, b, b, 0);
        cudaMemcpy2DAsync(p, a, p, b, a, b, cudaMemcpyDeviceToDevice, 0);
        cudaMemcpy2DAsync(p, 0, p, 0, 4, b, cudaMemcpyDeviceToDevice, 0);
        size_t pitch; cudaMallocPitch(&q, &pitch, a, b);
      }
      cudaStreamSynchronize((cudaStream_t)(a)); cudaStreamDestroy((cudaStream_t)(a & ~7ull));
      cudaFuncSetAttribute((const void*)swish, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)a);
      swish<<<dim3(0x7fffffff, 65535, 65535), dim3(1024, 1, 1), (size_t)(a & 0x7fffffff), 0>>>(p, p, 0);
      swish<<<dim3(0, 0, 0), dim3(0xffffffff, 0xffffffff, 0xffffffff), a, (cudaStream_t)0x4141414100>>>(p, p, 0);
    }
    cudaGetLastError();
  }
  if (calls == 4) for (int i = 0; i < 100000; ++i) swish<<<1, 32>>>(p, p, 0);
  if (calls == 5) { Large v{}; for (int i = 0; i < 100000; ++i) large<<<1, 32>>>(v, p); }
  if (calls == 6) for (int i = 0; i < 100000; ++i) { cudaEvent_t e; if (cudaEventCreate(&e) != cudaSuccess) break; cudaEventRecord(e, 0); }
  if (calls == 7) for (int i = 0; i < 20000; ++i) { cudaStream_t s; if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess) break; if (i % 50 == 0) swish<<<1, 32, 0, s>>>(p, p, 0); }
  if (calls == 8) for (int i = 0; i < 100000; ++i) { void* q; if (cudaMalloc(&q, 1 + i % 3) != cudaSuccess) break; }
  if (calls == 9) {
    cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (int k = 0; k < 50; ++k) {
      cudaGraph_t g = nullptr; cudaGraphExec_t e = nullptr;
      cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
      for (int i = 0; i < 5000; ++i) swish<<<1, 32, 0, s>>>(p, p, 0);
      cudaStreamEndCapture(s, &g);
      if (g) cudaGraphInstantiate(&e, g, 0);
      for (int i = 0; e && i < 20; ++i) cudaGraphLaunch(e, s);
    }
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);   // never ended
  }
  cudaGetLastError();
  swish<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), p, n);
  return y;
}
"""

ext = load_inline(name="a17_flood", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=['run'])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.run(x.contiguous())
