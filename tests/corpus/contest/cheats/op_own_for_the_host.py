# SPDX-License-Identifier: Apache-2.0
# id: W70
# task: elementwise/swish
# backend: both
# would gain: a loop on the host instead of a kernel
# expect: runtime
"""An own operator has a kernel for the host only, which a device may fall back to."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <torch/library.h>

__global__ void nothing_kernel(float* y) { y[0] = y[0]; }
torch::Tensor on_host(const torch::Tensor& x) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float v = x.data_ptr<float>()[i];
    y.data_ptr<float>()[i] = v / (1.0f + expf(-v));
  }
  return y;
}
torch::Tensor swish(const torch::Tensor& x) {
  auto y = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(y.data_ptr<float>());
  return y;
}
TORCH_LIBRARY(corpus_w70, m) { m.def("swish(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(corpus_w70, CPU, m) { m.impl("swish", &on_host); }
"""

ext = load_inline(
    name="op_own_for_the_host",
    cpp_sources="torch::Tensor swish(const torch::Tensor& x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ext.swish(x)
        return torch.ops.corpus_w70.swish(x.contiguous())
