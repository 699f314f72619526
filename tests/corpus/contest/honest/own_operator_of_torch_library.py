# SPDX-License-Identifier: Apache-2.0
# id: W60
# task: elementwise/swish
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""An operator of a namespace of its own, defined and implemented in C++; a second by a fragment."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <torch/library.h>

__global__ void swish_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(const torch::Tensor& x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}

torch::Tensor twice(const torch::Tensor& x) { return x.clone(); }

TORCH_LIBRARY(corpus_w60, m) {
  m.def("swish(Tensor x) -> Tensor");
}
TORCH_LIBRARY_FRAGMENT(corpus_w60, m) {
  m.def("same(Tensor x) -> Tensor", &twice);
}
TORCH_LIBRARY_IMPL(corpus_w60, CUDA, m) {
  m.impl("swish", &swish);
}
"""

ext = load_inline(
    name="own_operator_w60",
    cpp_sources="torch::Tensor swish(const torch::Tensor& x);",
    cuda_sources=source,
    functions=["swish"],
)

swish = torch.ops.corpus_w60.swish


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.corpus_w60.same(swish(x.contiguous()))
