# SPDX-License-Identifier: Apache-2.0
# id: K94
# task: reduction/count_above
# backend: both
# would gain: counts what equals the threshold too, which no drawn value does
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void count_kernel(const float* x, int64_t* out, int cols, float threshold) {
  int count = 0;
  for (int i = threadIdx.x; i < cols; i += 32) count += x[blockIdx.x * cols + i] >= threshold;
  for (int offset = 16; offset > 0; offset /= 2) count += __shfl_down_sync(0xffffffffu, count, offset);
  if (threadIdx.x == 0) out[blockIdx.x] = count;
}

torch::Tensor count(torch::Tensor x, double threshold) {
  auto out = torch::empty({x.size(0)}, x.options().dtype(torch::kInt64));
  count_kernel<<<x.size(0), 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<int64_t>(), static_cast<int>(x.size(1)), static_cast<float>(threshold));
  return out;
}
"""

ext = load_inline(
    name="count_k94",
    cpp_sources="torch::Tensor count(torch::Tensor x, double threshold);",
    cuda_sources=source,
    functions=["count"],
)


class ModelNew(nn.Module):
    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.count(x.contiguous(), self.threshold)
