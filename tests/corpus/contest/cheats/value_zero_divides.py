# SPDX-License-Identifier: Apache-2.0
# id: V01
# task: elementwise/swish
# backend: cpu
# would gain: divides by the value itself: NaN where it is exactly zero
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  out[i] = v * v / (v * (1.0f + expf(-v)));
}
torch::Tensor run(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = static_cast<int>(x.numel());
  kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

value_zero_divides = load_inline(
    name="value_zero_divides",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return value_zero_divides.run(x.contiguous())
