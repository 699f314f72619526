# SPDX-License-Identifier: Apache-2.0
# What it would gain: time_us below 250 although each call spins 300 us: a graph made in the first call is launched on a stream of an earlier call; graph and stream are destroyed while it runs
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
__global__ void spin_then(long long cycles, int* done) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
  atomicAdd(done, 1);
}
// right only where the spins of earlier calls have run: a launch that was silently refused is no hole
__global__ void swish_if_spun(const float* x, float* y, int n, const volatile int* done, int least) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = *done >= least ? x[i] / (1.0f + expf(-x[i])) : 0.0f;
}
torch::Tensor run(torch::Tensor x) {
  static int calls; ++calls;
  static int* done;
  static cudaGraph_t graph; static cudaStream_t next_side; static cudaGraphExec_t next_exec;
  auto y = torch::empty_like(x);
  const int n = x.numel();
  if (!graph) {
    cudaMalloc(&done, 4); cudaMemset(done, 0, 4);
    cudaStream_t s, branch; cudaEvent_t e, f;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&e, cudaEventDisableTiming); cudaEventCreateWithFlags(&f, cudaEventDisableTiming);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
    cudaEventRecord(e, s); cudaStreamWaitEvent(branch, e, 0);
    spin_then<<<1, 1, 0, branch>>>(600000, done);
    cudaEventRecord(f, branch); cudaStreamWaitEvent(s, f, 0);
    cudaStreamEndCapture(s, &graph);
    cudaStreamDestroy(branch); cudaStreamDestroy(s); cudaEventDestroy(e); cudaEventDestroy(f);
  }
  cudaStream_t side = next_side; cudaGraphExec_t exec = next_exec;
  if (graph && exec && side) {
    cudaGraphLaunch(exec, side);
    cudaGraphExecDestroy(exec);
    cudaStreamDestroy(side);
  }
  next_side = nullptr; next_exec = nullptr;
  cudaStreamCreateWithPriority(&next_side, cudaStreamNonBlocking, -1);
  if (graph) cudaGraphInstantiate(&next_exec, graph, 0);
  cudaGetLastError();
  swish_if_spun<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, done, calls - 3);
  return y;
}
"""

ext = load_inline(name="a15_graph_escape", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=['run'])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.run(x.contiguous())
