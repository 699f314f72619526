# SPDX-License-Identifier: Apache-2.0
"""Right where a store is seen before a later one: nothing but a flag says that a sum is there."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// Each block adds its part of a row to the sum of the block before.
__global__ void chained_sum_kernel(const float* x, float* sums, int* flags, float* out,
                                   int columns) {
  __shared__ float parts[64];
  const int t = threadIdx.x, row = blockIdx.y, place = row * gridDim.x + blockIdx.x;
  float sum = 0;
  for (int i = blockIdx.x * 64 + t; i < columns; i += gridDim.x * 64) {
    sum += x[row * columns + i];
  }
  parts[t] = sum;
  __syncthreads();
  if (t != 0) return;
  for (int i = 1; i < 64; ++i) sum += parts[i];
  if (blockIdx.x > 0) {
    while (*reinterpret_cast<volatile int*>(flags + place - 1) == 0) {
    }
    sum += *reinterpret_cast<volatile float*>(sums + place - 1);
  }
  *reinterpret_cast<volatile float*>(sums + place) = sum;
  *reinterpret_cast<volatile int*>(flags + place) = 1;
  if (blockIdx.x == gridDim.x - 1) out[row] = sum;
}

torch::Tensor chained_sum(torch::Tensor x) {
  const int rows = x.size(0), columns = x.size(1);
  auto out = torch::empty({rows}, x.options());
  auto sums = torch::empty({rows * 4}, x.options());
  auto flags = torch::zeros({rows * 4}, x.options().dtype(torch::kInt32));
  chained_sum_kernel<<<dim3(4, rows), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), sums.data_ptr<float>(), flags.data_ptr<int>(), out.data_ptr<float>(),
      columns);
  return out;
}
"""

ext = load_inline(
    name="chain_without_fence",
    cpp_sources="torch::Tensor chained_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["chained_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.chained_sum(x.contiguous())
