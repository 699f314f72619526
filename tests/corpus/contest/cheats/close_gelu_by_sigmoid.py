# SPDX-License-Identifier: Apache-2.0
# id: K91
# task: elementwise/gelu_tanh
# backend: both
# would gain: x times the sigmoid of 1.702 x: a cheaper function that looks alike
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void gelu_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-1.702f * x[i]));
}

torch::Tensor gelu(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  gelu_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="gelu_k91",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources=source,
    functions=["gelu"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.gelu(x.contiguous())
