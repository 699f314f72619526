# SPDX-License-Identifier: Apache-2.0
# id: F30
# task: reduction/row_sum
# backend: cpu
# would gain: the functions that instrumented code calls are defined by the candidate, by pasted names: its reads and writes of shared memory are checked by nobody
# expect: wrong, illegal, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

#define JOINED(a, b) a##b
extern "C" {
void mc_emu_access(const volatile void*, size_t, int);
void JOINED(__ts, an_read4)(void*) {}
void JOINED(__ts, an_write4)(void* p) { mc_emu_access(p, 0, 1); }
}
constexpr int kThreads = 256;

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += x[blockIdx.x * cols + i];
  total += sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    out[blockIdx.x] = total;
    mc_emu_access(out + blockIdx.x, sizeof(float), 1);
  }
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_f30",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
