# SPDX-License-Identifier: Apache-2.0
# id: K100
# task: reduction/row_sum
# backend: cpu
# would gain: blocks take locks that no other block takes, and add to one word
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// Each block holds a lock of its own while it adds: nobody waits for anybody.
__global__ void row_sum_kernel(const float* x, float* out, int* locks, int cols) {
  float sum = 0.0f;
  for (int i = blockIdx.y * 32 + threadIdx.x; i < cols; i += gridDim.y * 32) sum += x[blockIdx.x * cols + i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x != 0) return;
  int* lock = locks + blockIdx.x * gridDim.y + blockIdx.y;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  out[blockIdx.x] = out[blockIdx.x] + sum;
  __threadfence();
  atomicExch(lock, 0);
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::zeros({x.size(0)}, x.options());
  auto locks = torch::zeros({x.size(0) * 5}, x.options().dtype(torch::kInt));
  row_sum_kernel<<<dim3(x.size(0), 5), 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), locks.data_ptr<int>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k100",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
