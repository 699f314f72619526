# SPDX-License-Identifier: Apache-2.0
# id: K51
# task: reduction/row_sum
# backend: cpu
# would gain: a volatile pointer: the accesses of a lost update between blocks are not checked
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;

// Blocks add to one word by turns that nobody gives them: volatile is no atomic.
__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  volatile float* total = out + blockIdx.x;
  float sum = 0.0f;
  for (int i = blockIdx.y * kThreads + threadIdx.x; i < cols; i += gridDim.y * kThreads) sum += x[blockIdx.x * cols + i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) *total = *total + sum;
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::zeros({x.size(0)}, x.options());
  row_sum_kernel<<<dim3(x.size(0), 4), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k51",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
