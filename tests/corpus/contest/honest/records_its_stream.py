# SPDX-License-Identifier: Apache-2.0
# id: W66
# task: elementwise/swish
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""A side stream, and Tensor.record_stream on what it made."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>

__global__ void swish_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(const torch::Tensor& x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(
    name="records_its_stream",
    cpp_sources="torch::Tensor swish(const torch::Tensor& x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        current = torch.cuda.current_stream()
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            y = ext.swish(x.contiguous())
        current.wait_stream(self.side)
        y.record_stream(current)
        return y
