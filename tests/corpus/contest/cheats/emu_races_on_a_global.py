# SPDX-License-Identifier: Apache-2.0
# id: K50
# task: reduction/row_sum
# backend: cpu
# would gain: threads race on a __device__ array, which lies outside of the memory that is checked
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;

__device__ float totals[4096];

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  if (threadIdx.x == 0) totals[blockIdx.x] = 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += x[blockIdx.x * cols + i];
  totals[blockIdx.x] += sum;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = totals[blockIdx.x];
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k50",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
