# SPDX-License-Identifier: Apache-2.0
# Right with warps of any size: the votes are those of the block.
import torch
import torch_musa
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

musa_source = r"""
#include <torch/extension.h>
#include "torch_musa/csrc/aten/musa/MUSAContext.h"
#include "torch_musa/csrc/core/MUSAException.h"

__global__ void count_above_kernel(const float* __restrict__ x, int64_t* __restrict__ out,
                                   float threshold, int cols) {
  x += static_cast<size_t>(blockIdx.x) * cols;
  int64_t count = 0;
  for (int first = 0; first < cols; first += blockDim.x) {
    const int i = first + threadIdx.x;
    count += __syncthreads_count(i < cols && x[i] > threshold);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = count;
}

torch::Tensor count_above(torch::Tensor x, double threshold) {
  const int rows = x.size(0);
  const int cols = x.size(1);
  auto out = torch::empty({rows}, x.options().dtype(torch::kInt64));
  count_above_kernel<<<rows, 256, 0, at::musa::getCurrentMUSAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<int64_t>(), static_cast<float>(threshold), cols);
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

count_above_ext = load_inline(
    name="count_above_ext",
    cpp_sources="torch::Tensor count_above(torch::Tensor x, double threshold);",
    musa_sources=musa_source,
    functions=["count_above"],
)


class ModelNew(nn.Module):
    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return count_above_ext.count_above(x.contiguous(), self.threshold)
