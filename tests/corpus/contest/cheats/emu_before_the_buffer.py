# SPDX-License-Identifier: Apache-2.0
# id: K63
# task: reduction/row_sum
# backend: cpu
# would gain: reads one element before its buffer, in a device function that is not watched and so tells nothing
# expect: wrong, illegal, compile, runtime
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;

#define QUIET __attribute__((__no_sanitize_thread__, noinline))
// Sums [begin, end) of x shifted by one, and puts right what that leaves out and brings in.
QUIET __device__ float shifted(const float* x, int begin, int end) {
  float sum = 0.0f;
  for (int i = begin; i < end; ++i) {
    const volatile float* before = x + i - 1;
    const float unused = *before;
    sum += unused == unused ? x[i] : x[i] + 0.0f;
  }
  return sum;
}

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  if (threadIdx.x == 0) out[blockIdx.x] = shifted(x, blockIdx.x * cols, (blockIdx.x + 1) * cols);
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k63",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
