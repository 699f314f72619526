# SPDX-License-Identifier: Apache-2.0
"""Transposed convolution in three dimensions, gathered: each output collects its inputs.

An input d reaches the output od when od + padding - kd is stride * d, for a filter tap kd.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

struct Shape {
  int in_channels, out_channels, groups;
  int in[3], out[3], kernel[3], stride[3], padding[3];
};

// The input position that tap `k` carries to output `o` along `axis`; -1 where there is none.
__device__ __forceinline__ int source(const Shape& s, int axis, int o, int k) {
  const int shifted = o + s.padding[axis] - k;
  if (shifted < 0 || shifted % s.stride[axis] != 0) {
    return -1;
  }
  const int position = shifted / s.stride[axis];
  return position < s.in[axis] ? position : -1;
}

__global__ void conv_transpose3d_kernel(const float* __restrict__ x,
                                        const float* __restrict__ weight,
                                        const float* __restrict__ bias, float* __restrict__ y,
                                        Shape s, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int64_t rest = i;
  const int ow = rest % s.out[2];
  rest /= s.out[2];
  const int oh = rest % s.out[1];
  rest /= s.out[1];
  const int od = rest % s.out[0];
  rest /= s.out[0];
  const int oc = rest % s.out_channels;
  const int64_t n = rest / s.out_channels;

  const int out_per_group = s.out_channels / s.groups;
  const int in_per_group = s.in_channels / s.groups;
  const int group = oc / out_per_group;
  const int taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t volume = static_cast<int64_t>(s.in[0]) * s.in[1] * s.in[2];
  const float* x_group = x + (n * s.in_channels + group * in_per_group) * volume;
  const float* w_group =
      weight + (static_cast<int64_t>(group) * in_per_group * out_per_group +
                oc % out_per_group) * taps;

  float sum = bias != nullptr ? bias[oc] : 0.0f;
  for (int kd = 0; kd < s.kernel[0]; ++kd) {
    const int d = source(s, 0, od, kd);
    if (d < 0) continue;
    for (int kh = 0; kh < s.kernel[1]; ++kh) {
      const int h = source(s, 1, oh, kh);
      if (h < 0) continue;
      for (int kw = 0; kw < s.kernel[2]; ++kw) {
        const int w = source(s, 2, ow, kw);
        if (w < 0) continue;
        const int tap = (kd * s.kernel[1] + kh) * s.kernel[2] + kw;
        const int64_t at = (static_cast<int64_t>(d) * s.in[1] + h) * s.in[2] + w;
        for (int ic = 0; ic < in_per_group; ++ic) {
          sum += x_group[ic * volume + at] *
                 w_group[static_cast<int64_t>(ic) * out_per_group * taps + tap];
        }
      }
    }
  }
  y[i] = sum;
}

torch::Tensor conv_transpose3d_cuda(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                                    std::vector<int64_t> stride, std::vector<int64_t> padding,
                                    std::vector<int64_t> output_padding, int64_t groups) {
  Shape s;
  s.in_channels = x.size(1);
  s.out_channels = weight.size(1) * groups;
  s.groups = groups;
  for (int axis = 0; axis < 3; ++axis) {
    s.in[axis] = x.size(2 + axis);
    s.kernel[axis] = weight.size(2 + axis);
    s.stride[axis] = stride[axis];
    s.padding[axis] = padding[axis];
    s.out[axis] = (s.in[axis] - 1) * s.stride[axis] - 2 * s.padding[axis] + s.kernel[axis] +
                  output_padding[axis];
  }
  auto y = torch::empty({x.size(0), s.out_channels, s.out[0], s.out[1], s.out[2]}, x.options());
  const int64_t total = y.numel();
  const float* bias_data = bias.numel() > 0 ? bias.data_ptr<float>() : nullptr;
  conv_transpose3d_kernel<<<(total + 127) / 128, 128>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias_data, y.data_ptr<float>(), s, total);
  return y;
}
"""

cpp_source = """
torch::Tensor conv_transpose3d_cuda(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                                    std::vector<int64_t> stride, std::vector<int64_t> padding,
                                    std::vector<int64_t> output_padding, int64_t groups);
"""

ext = load_inline(
    name="conv_transpose3d_gather",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_transpose3d_cuda"],
)


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple,
        stride: tuple = (1, 1, 1),
        padding: tuple = (0, 0, 0),
        output_padding: tuple = (0, 0, 0),
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=bias,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv_transpose3d
        bias = conv.bias if conv.bias is not None else torch.empty(0, device=x.device)
        return ext.conv_transpose3d_cuda(
            x.contiguous(),
            conv.weight,
            bias,
            conv.stride,
            conv.padding,
            conv.output_padding,
            conv.groups,
        )
