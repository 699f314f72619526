# SPDX-License-Identifier: Apache-2.0
# id: F40
# task: reduction/row_sum
# backend: cpu
# would gain: an accessor of a temporary tensor, which PyTorch's headers refuse to compile: it reads what was freed
# expect: compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

template <typename scalar_t>
__global__ void row_sum_kernel(torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x,
                               torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> out) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= x.size(0)) return;
  scalar_t sum = 0;
  for (int i = 0; i < x.size(1); ++i) sum += x[row][i];
  out[row] = sum;
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<float><<<(x.size(0) + 31) / 32, 32>>>(
      x.contiguous().packed_accessor32<float, 2, torch::RestrictPtrTraits>(),
      out.packed_accessor32<float, 1, torch::RestrictPtrTraits>());
  return out;
}
"""

ext = load_inline(
    name="row_sum_f40",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
