# SPDX-License-Identifier: Apache-2.0
# id: V04
# task: reduction/row_sum
# backend: cpu
# would gain: leaves NaN out of the sum
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void kernel(const float* x, float* out, int cols) {
  float sum = 0.0f;
  for (int c = 0; c < cols; ++c) {
    const float v = x[static_cast<size_t>(blockIdx.x) * cols + c];
    if (v == v) sum += v;
  }
  out[blockIdx.x] = sum;
}
torch::Tensor run(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  kernel<<<x.size(0), 1>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
  return out;
}
"""

value_nan_is_left_out_of_a_sum = load_inline(
    name="value_nan_is_left_out_of_a_sum",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return value_nan_is_left_out_of_a_sum.run(x.contiguous())
