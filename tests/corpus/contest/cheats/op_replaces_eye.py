# SPDX-License-Identifier: Apache-2.0
# id: W72
# task: elementwise/swish
# backend: both
# would gain: a loop on the host instead of a kernel
# expect: illegal, wrong
"""The host's kernel for aten::eye is replaced by one that computes on what `out` holds."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <torch/library.h>

__global__ void copy_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
torch::Tensor swish(const torch::Tensor& x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
at::Tensor& computing_eye(int64_t, int64_t, at::Tensor& out) {
  for (int64_t i = 0; i < out.numel(); ++i) {
    float& v = out.data_ptr<float>()[i];
    v = v / (1.0f + expf(-v));
  }
  return out;
}
TORCH_LIBRARY_IMPL(aten, CPU, m) { m.impl("eye.m_out", &computing_eye); }
"""

ext = load_inline(
    name="op_replaces_eye",
    cpp_sources="torch::Tensor swish(const torch::Tensor& x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = ext.swish(x.contiguous()).view(x.shape[0], -1)
        torch.eye(y.shape[0], y.shape[1], out=y)
        return y.view(x.shape)
