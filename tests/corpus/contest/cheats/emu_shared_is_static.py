# SPDX-License-Identifier: Apache-2.0
# id: K60
# task: reduction/row_sum
# backend: cpu
# would gain: the sources define __shared__ anew, as plain static memory, which is nobody's
# expect: wrong, illegal, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;

#undef __shared__
#define __shared__ static
__device__ float spare;

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  __shared__ float totals[4096];
  float& total = totals[blockIdx.x];
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += x[blockIdx.x * cols + i];
  total += sum;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k60",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
