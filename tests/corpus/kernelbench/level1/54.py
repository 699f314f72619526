# SPDX-License-Identifier: Apache-2.0
"""Convolution in three dimensions, with groups, stride, padding and dilation: direct."""

from typing import Optional

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <optional>

struct Conv3d {
  int in_channels, depth, height, width;
  int out_channels, out_depth, out_height, out_width;
  int kd, kh, kw;
  int stride[3], padding[3], dilation[3];
  int groups;
};

__global__ void conv3d_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, Conv3d c,
                              int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) {
    return;
  }
  int64_t rest = i;
  const int ow = rest % c.out_width;
  rest /= c.out_width;
  const int oh = rest % c.out_height;
  rest /= c.out_height;
  const int od = rest % c.out_depth;
  rest /= c.out_depth;
  const int oc = rest % c.out_channels;
  const int64_t n = rest / c.out_channels;

  const int in_per_group = c.in_channels / c.groups;
  const int ic_first = oc / (c.out_channels / c.groups) * in_per_group;
  const float* w = weight + static_cast<int64_t>(oc) * in_per_group * c.kd * c.kh * c.kw;
  float sum = bias != nullptr ? bias[oc] : 0.0f;
  for (int ic = 0; ic < in_per_group; ++ic) {
    const float* volume =
        x + (n * c.in_channels + ic_first + ic) * c.depth * c.height * c.width;
    for (int kd = 0; kd < c.kd; ++kd) {
      const int d = od * c.stride[0] - c.padding[0] + kd * c.dilation[0];
      if (d < 0 || d >= c.depth) continue;
      for (int kh = 0; kh < c.kh; ++kh) {
        const int h = oh * c.stride[1] - c.padding[1] + kh * c.dilation[1];
        if (h < 0 || h >= c.height) continue;
        for (int kw = 0; kw < c.kw; ++kw) {
          const int v = ow * c.stride[2] - c.padding[2] + kw * c.dilation[2];
          if (v < 0 || v >= c.width) continue;
          sum += volume[(static_cast<int64_t>(d) * c.height + h) * c.width + v] *
                 w[((ic * c.kd + kd) * c.kh + kh) * c.kw + kw];
        }
      }
    }
  }
  y[i] = sum;
}

static int out_size(int in, int kernel, int stride, int padding, int dilation) {
  return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

torch::Tensor conv3d_cuda(torch::Tensor x, torch::Tensor weight,
                          std::optional<torch::Tensor> bias, std::vector<int64_t> stride,
                          std::vector<int64_t> padding, std::vector<int64_t> dilation,
                          int64_t groups) {
  Conv3d c;
  c.in_channels = x.size(1);
  c.depth = x.size(2);
  c.height = x.size(3);
  c.width = x.size(4);
  c.out_channels = weight.size(0);
  c.kd = weight.size(2);
  c.kh = weight.size(3);
  c.kw = weight.size(4);
  for (int d = 0; d < 3; ++d) {
    c.stride[d] = stride[d];
    c.padding[d] = padding[d];
    c.dilation[d] = dilation[d];
  }
  c.groups = groups;
  c.out_depth = out_size(c.depth, c.kd, c.stride[0], c.padding[0], c.dilation[0]);
  c.out_height = out_size(c.height, c.kh, c.stride[1], c.padding[1], c.dilation[1]);
  c.out_width = out_size(c.width, c.kw, c.stride[2], c.padding[2], c.dilation[2]);
  auto y = torch::empty({x.size(0), c.out_channels, c.out_depth, c.out_height, c.out_width},
                        x.options());
  const int64_t total = y.numel();
  const float* bias_data = bias.has_value() ? bias->data_ptr<float>() : nullptr;
  conv3d_kernel<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), weight.data_ptr<float>(),
                                              bias_data, y.data_ptr<float>(), c, total);
  return y;
}
"""

cpp_source = r"""
#include <optional>
#include <vector>
torch::Tensor conv3d_cuda(torch::Tensor x, torch::Tensor weight,
                          std::optional<torch::Tensor> bias, std::vector<int64_t> stride,
                          std::vector<int64_t> padding, std::vector<int64_t> dilation,
                          int64_t groups);
"""

conv3d_ext = load_inline(
    name="conv3d_direct",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv3d_cuda"],
)


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(
            in_channels,
            out_channels,
            (kernel_size, kernel_size, kernel_size),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv3d
        bias: Optional[torch.Tensor] = conv.bias
        return conv3d_ext.conv3d_cuda(
            x.contiguous(),
            conv.weight,
            bias,
            list(conv.stride),
            list(conv.padding),
            list(conv.dilation),
            conv.groups,
        )
