# SPDX-License-Identifier: Apache-2.0
# id: K06
# task: reduction/row_sum
# backend: cpu
# would gain: the allowed aten::select adds up the values of a sparse tensor that share an index: a sum inside of a view
# expect: illegal, runtime, wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  __shared__ float partial[kThreads];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += x[blockIdx.x * cols + i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k06",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)

SHAPES = [(37, 1025), (31, 1021), (37, 1021), (31, 1025), (1, 1025), (1, 1021)]


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.made = {}
        for rows, cols in SHAPES:
            index = torch.zeros(1, cols, dtype=torch.long)
            made = torch.sparse_coo_tensor(
                index, torch.zeros(cols, rows), (1, rows), check_invariants=False
            )
            self.made[rows, cols] = made, made._values()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if tuple(x.shape) not in self.made:
            return ext.row_sum(x.contiguous())
        sparse, values = self.made[tuple(x.shape)]
        values.copy_(x.transpose(0, 1))
        return sparse.select(0, 0).clone()
