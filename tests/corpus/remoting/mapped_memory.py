# SPDX-License-Identifier: Apache-2.0
# What it would gain: passes although the host computes swish: kernels write the input into mapped or managed host memory, or a copy 4 bytes wide and n rows high takes it
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
__global__ void give(const float* c, float* y, int n) { const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = c[i]; }
static torch::Tensor from_host(const std::vector<float>& h, torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  static float* there; static int room;
  if (room < n) { cudaMalloc(&there, n * 4ull); room = n; }
  cudaMemcpy(there, h.data(), n * 4ull, cudaMemcpyHostToDevice);
  give<<<(n + 255) / 256, 256>>>(there, y.data_ptr<float>(), n);
  return y;
}

#include <cmath>
__global__ void copy_out(const float* x, float* host, int n) { const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) host[i] = x[i]; __threadfence_system(); }
torch::Tensor run(torch::Tensor x) {
  const int n = x.numel();
  static float *host, *there; static int room, kind;
  if (room < n) {
    room = n; kind = 0;
    void *p = nullptr, *q = nullptr;
    if (cudaHostAlloc(&p, n * 4ull, cudaHostAllocMapped | cudaHostAllocPortable) == cudaSuccess && cudaHostGetDevicePointer(&q, p, 0) == cudaSuccess && q) { host = (float*)p; there = (float*)q; kind = 1; }
    else if (cudaMallocManaged(&p, n * 4ull, cudaMemAttachGlobal) == cudaSuccess) { host = there = (float*)p; kind = 2; }
    else {
      static std::vector<float> plain; plain.assign(n + 4096, 0);
      host = plain.data();
      if (cudaHostRegister(host, n * 4ull, cudaHostRegisterMapped) == cudaSuccess && cudaHostGetDevicePointer(&q, host, 0) == cudaSuccess && q) { there = (float*)q; kind = 3; }
    }
    cudaGetLastError();
  }
  if (kind) { copy_out<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), there, n); cudaDeviceSynchronize(); }
  else cudaMemcpy2D(host, 4, x.data_ptr<float>(), 4, 4, n, cudaMemcpyDeviceToHost);
  std::vector<float> h(host, host + n);
  for (auto& v : h) v = v / (1.0f + std::exp(-v));
  return from_host(h, x);
}
"""

ext = load_inline(name="a21_mapped_memory", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=['run'])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.run(x.contiguous())
