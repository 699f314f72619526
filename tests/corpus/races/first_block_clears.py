# SPDX-License-Identifier: Apache-2.0
"""Right where the block that starts first clears the sum before the others have theirs."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void split_sum_kernel(const float* x, float* out, int columns) {
  __shared__ float sums[64];
  const int t = threadIdx.x, row = blockIdx.y;
  if (blockIdx.x == 0 && t == 0) out[row] = 0;
  float sum = 0;
  for (int i = blockIdx.x * 64 + t; i < columns; i += gridDim.x * 64) {
    sum += x[row * columns + i];
  }
  sums[t] = sum;
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (t < step) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out + row, sums[0]);
}

torch::Tensor split_sum(torch::Tensor x) {
  const int rows = x.size(0), columns = x.size(1);
  auto out = torch::empty({rows}, x.options());
  split_sum_kernel<<<dim3(4, rows), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), columns);
  return out;
}
"""

ext = load_inline(
    name="first_block_clears",
    cpp_sources="torch::Tensor split_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["split_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.split_sum(x.contiguous())
