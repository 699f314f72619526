# SPDX-License-Identifier: Apache-2.0
# id: K53
# task: reduction/row_sum
# backend: cpu
# would gain: after 1,100 barriers the interval that tells accesses to device memory apart is at its end: what races then is not seen
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;

constexpr int kLanes = 64;

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  if (threadIdx.x == 0) out[blockIdx.x] = 0.0f;
  for (int i = 0; i < 1100; ++i) __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kLanes) sum += x[blockIdx.x * cols + i];
  out[blockIdx.x] += sum;  // All threads of the block, unordered.
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kLanes, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k53",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
