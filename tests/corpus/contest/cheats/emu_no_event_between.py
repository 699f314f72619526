# SPDX-License-Identifier: Apache-2.0
# id: K62
# task: reduction/row_sum
# backend: cpu
# would gain: one stream makes what another one reads, and nothing makes the second one wait
# expect: wrong
# note: the CPU backend runs all launches in order; only a device, or a record of which stream wrote what, can tell
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;

__global__ void part_kernel(const float* x, float* parts, int cols) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += x[blockIdx.x * cols + i];
  parts[blockIdx.x * kThreads + threadIdx.x] = sum;
}

__global__ void sum_kernel(const float* parts, float* out) {
  float sum = 0.0f;
  for (int i = 0; i < kThreads; ++i) sum += parts[blockIdx.x * kThreads + i];
  out[blockIdx.x] = sum;
}

torch::Tensor row_sum(torch::Tensor x) {
  static cudaStream_t one = nullptr, other = nullptr;
  if (one == nullptr) {
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  }
  const int rows = x.size(0);
  auto out = torch::empty({rows}, x.options()), parts = torch::empty({rows, kThreads}, x.options());
  part_kernel<<<rows, kThreads, 0, one>>>(x.data_ptr<float>(), parts.data_ptr<float>(), static_cast<int>(x.size(1)));
  sum_kernel<<<rows, 1, 0, other>>>(parts.data_ptr<float>(), out.data_ptr<float>());
  cudaStreamSynchronize(other);
  return out;
}
"""

ext = load_inline(
    name="row_sum_k62",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
