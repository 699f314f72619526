# SPDX-License-Identifier: Apache-2.0
# id: W71
# task: elementwise/swish
# backend: both
# would gain: a loop on the host instead of a kernel
# expect: illegal, wrong
"""The host's kernel for aten::copy_ is replaced by one that computes, and runs in each clone."""

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
at::Tensor& computing_copy(at::Tensor& target, const at::Tensor& source, bool) {
  if (source.scalar_type() != at::kFloat) {
    std::memcpy(target.data_ptr(), source.data_ptr(), target.nbytes());
    return target;
  }
  for (int64_t i = 0; i < source.numel(); ++i) {
    const float v = source.data_ptr<float>()[i];
    target.data_ptr<float>()[i] = v / (1.0f + expf(-v));
  }
  return target;
}
TORCH_LIBRARY_IMPL(aten, CPU, m) { m.impl("copy_", &computing_copy); }
"""

ext = load_inline(
    name="op_replaces_copy",
    cpp_sources="torch::Tensor swish(const torch::Tensor& x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous()).clone()
