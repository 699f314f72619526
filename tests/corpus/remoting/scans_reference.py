# SPDX-License-Identifier: Apache-2.0
# What it would gain: passes although no kernel computes swish: the output is found in the 2 MiB around inputs and outputs, or behind pointers that lie beside the kernel's own arguments
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
__device__ unsigned long long found;
struct Own { const float* x; float* y; int n; int pad[25]; };
__device__ bool like(const float* x, const float* p) {
  for (int k = 0; k < 8; ++k) {
    const float want = x[k] / (1.0f + expf(-x[k]));
    if (!(fabsf(p[k] - want) <= 1e-4f * fabsf(want) + 1e-6f)) return false;
  }
  return true;
}
__device__ void scan(const Own& o, unsigned long long near) {
  const float* block = (const float*)(near & ~((2ull << 20) - 1));
  for (int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x); i + 8 < (2 << 20) / 4; i += 4 * gridDim.x * blockDim.x)
    if (block + i != o.x && fabsf(o.x[0]) > 1e-3f && like(o.x, block + i)) found = (unsigned long long)(block + i);
}
__global__ void look_near(const Own o) { scan(o, (unsigned long long)o.x); scan(o, (unsigned long long)o.y); }
__global__ void look_beside_arguments(const __grid_constant__ Own o) {
  if (found) return;
  const unsigned long long* words = (const unsigned long long*)((unsigned long long)&o & ~0xfffull);   // the page of the launch's constant bank
  for (int k = 0; k < 512; ++k) {
    const unsigned long long w = words[k];
    if ((w >> 40) != ((unsigned long long)o.x >> 40) || (w & 15)) continue;   // looks like a device pointer
    scan(o, w);
  }
}
__global__ void give(const Own o) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < o.n) o.y[i] = found ? ((const float*)found)[i] : 0.0f;
}
__global__ void forget() { found = 0; }
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  Own o{x.data_ptr<float>(), y.data_ptr<float>(), (int)x.numel(), {}};
  forget<<<1, 1>>>();
  look_near<<<64, 256>>>(o);
  look_beside_arguments<<<64, 256>>>(o);
  give<<<(o.n + 255) / 256, 256>>>(o);
  return y;
}
"""

ext = load_inline(name="a08_scans_reference", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=['run'])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.run(x.contiguous())
