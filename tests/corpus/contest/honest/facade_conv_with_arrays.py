# SPDX-License-Identifier: Apache-2.0
# id: H14
# task: convolution/conv2d_strided
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""A convolution with IntArrayRef parameters, std::array and structured bindings."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#include <array>

struct Shape { int channels, height, width, out_channels, out_height, out_width, kernel, stride, padding; };

__global__ void conv_kernel(const float* x, const float* w, const float* b, float* out, Shape s, int total) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int ox = i % s.out_width, oy = i / s.out_width % s.out_height;
  const int oc = i / (s.out_width * s.out_height) % s.out_channels, n = i / (s.out_width * s.out_height * s.out_channels);
  float sum = b[oc];
  for (int c = 0; c < s.channels; ++c)
    for (int ky = 0; ky < s.kernel; ++ky)
      for (int kx = 0; kx < s.kernel; ++kx) {
        const int iy = oy * s.stride + ky - s.padding, ix = ox * s.stride + kx - s.padding;
        if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
        sum += x[((n * s.channels + c) * s.height + iy) * s.width + ix] *
               w[((oc * s.channels + c) * s.kernel + ky) * s.kernel + kx];
      }
  out[i] = sum;
}

torch::Tensor conv(torch::Tensor x, torch::Tensor w, torch::Tensor b, at::IntArrayRef stride, std::vector<int64_t> padding) {
  const auto [n, c, h, width] = std::make_tuple(x.size(0), x.size(1), x.size(2), x.size(3));
  const std::array<int64_t, 2> k = {w.size(2), w.size(3)};
  const int64_t oh = (h + 2 * padding[0] - k[0]) / stride[0] + 1, ow = (width + 2 * padding[1] - k[1]) / stride[1] + 1;
  auto out = torch::empty({n, w.size(0), oh, ow}, x.options().memory_format(at::MemoryFormat::Contiguous));
  const Shape s{int(c), int(h), int(width), int(w.size(0)), int(oh), int(ow), int(k[0]), int(stride[0]), int(padding[0])};
  const int total = out.numel();
  conv_kernel<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), s, total);
  return out;
}
"""

ext = load_inline(
    name="conv_h14",
    cpp_sources="torch::Tensor conv(torch::Tensor x, torch::Tensor w, torch::Tensor b, at::IntArrayRef stride, std::vector<int64_t> padding);",
    cuda_sources=source,
    functions=["conv"],
)


class ModelNew(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv
        return ext.conv(
            x.contiguous(), conv.weight, conv.bias, list(conv.stride), list(conv.padding)
        )
