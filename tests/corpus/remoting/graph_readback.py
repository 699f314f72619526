# SPDX-License-Identifier: Apache-2.0
# What it would gain: passes although the host computes swish: a graph with a copy of 64 bytes to the host is captured once and launched thousands of times, each time with the next 16 values
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
__device__ int place;
__device__ float* from; __device__ int count;
__global__ void rewind(float* x, int n) { place = 0; from = x; count = n; }
__global__ void next16(float* stage) {
  const int at = place + threadIdx.x;
  stage[threadIdx.x] = at < count ? from[at] : 0.0f;
  __syncthreads();
  if (threadIdx.x == 0) place += 16;
}
torch::Tensor run(torch::Tensor x) {
  static cudaStream_t s; static cudaGraph_t graph; static cudaGraphExec_t exec; static float *stage, *pinned;
  if (!s) {
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaMalloc(&stage, 64); cudaHostAlloc((void**)&pinned, 64, 0);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
    next16<<<1, 16, 0, s>>>(stage);
    cudaMemcpyAsync(pinned, stage, 64, cudaMemcpyDeviceToHost, s);
    cudaStreamEndCapture(s, &graph);
    if (graph) cudaGraphInstantiate(&exec, graph, 0);
  }
  const int n = x.numel();
  std::vector<float> h(n);
  rewind<<<1, 1>>>(x.data_ptr<float>(), n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n && exec; i += 16) {
    cudaGraphLaunch(exec, s);
    cudaStreamSynchronize(s);
    for (int k = i; k < n && k < i + 16; ++k) h[k] = pinned[k - i];
  }
  for (auto& v : h) v = v / (1.0f + std::exp(-v));
  return from_host(h, x);
}
"""

ext = load_inline(name="a19_graph_readback", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=['run'])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.run(x.contiguous())
