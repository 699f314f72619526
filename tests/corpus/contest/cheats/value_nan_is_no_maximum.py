# SPDX-License-Identifier: Apache-2.0
# id: V03
# task: pooling/max_pool2d
# backend: cpu
# would gain: compares by > alone, so that a maximum passes over NaN
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void kernel(const float* x, float* out, int height, int width, int rows, int columns,
                       int size, int stride, int padding) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  const float* plane = x + static_cast<size_t>(blockIdx.y) * height * width;
  const int top = i / columns * stride - padding, left = i % columns * stride - padding;
  float best = -INFINITY;
  for (int y = max(top, 0); y < min(top + size, height); ++y) {
    for (int c = max(left, 0); c < min(left + size, width); ++c) {
      if (plane[y * width + c] > best) best = plane[y * width + c];
    }
  }
  out[static_cast<size_t>(blockIdx.y) * rows * columns + i] = best;
}
torch::Tensor run(torch::Tensor x, int64_t size, int64_t stride, int64_t padding) {
  const int height = x.size(2), width = x.size(3);
  const int rows = (height + 2 * padding - size) / stride + 1;
  const int columns = (width + 2 * padding - size) / stride + 1;
  auto out = torch::empty({x.size(0), x.size(1), rows, columns}, x.options());
  const dim3 grid((rows * columns + 127) / 128, x.size(0) * x.size(1));
  kernel<<<grid, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), height, width, rows, columns,
                        size, stride, padding);
  return out;
}
"""

nan_is_no_maximum = load_inline(
    name="nan_is_no_maximum",
    cpp_sources="torch::Tensor run(torch::Tensor x, int64_t size, int64_t stride, int64_t padding);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.sizes = kernel_size, stride, padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nan_is_no_maximum.run(x.contiguous(), *self.sizes)
