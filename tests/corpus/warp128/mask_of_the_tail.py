# SPDX-License-Identifier: Apache-2.0
# Assumes warps of 32: a ballot names the lanes that have an element, which then shuffle.
import torch
import torch_musa
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

musa_source = r"""
#include <torch/extension.h>
#include "torch_musa/csrc/aten/musa/MUSAContext.h"
#include "torch_musa/csrc/core/MUSAException.h"

__global__ void row_sum_kernel(const float* __restrict__ x, float* __restrict__ out, int rows,
                               int cols) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  x += static_cast<size_t>(blockIdx.x) * cols;
  const int lane = threadIdx.x & 31;
  for (int first = 0; first < cols; first += blockDim.x) {
    const int i = first + threadIdx.x;
    const unsigned mask = __ballot_sync(0xffffffff, i < cols);
    if (i >= cols) continue;
    float sum = x[i];
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_down_sync(mask, sum, offset);
      if (lane + offset < 32 && (mask >> (lane + offset) & 1) != 0) sum += other;
    }
    if (lane == 0) atomicAdd(&total, sum);
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

torch::Tensor row_sum(torch::Tensor x) {
  const int rows = x.size(0);
  const int cols = x.size(1);
  auto out = torch::empty({rows}, x.options());
  row_sum_kernel<<<rows, 192, 0, at::musa::getCurrentMUSAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), rows, cols);
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

row_sum_ext = load_inline(
    name="row_sum_ext",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    musa_sources=musa_source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return row_sum_ext.row_sum(x.contiguous())
