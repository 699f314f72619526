# SPDX-License-Identifier: Apache-2.0
"""Depthwise separable convolution in one kernel: a block makes all channels of 32 positions.

The depthwise results of those positions stay in shared memory for the pointwise part.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

constexpr int kPositions = 32;
constexpr int kRows = 8;

struct Conv {
  int channels, height, width, out_channels, out_height, out_width;
  int kernel, stride, padding, dilation;
};

__device__ float depthwise_at(const float* plane, const float* filter, const Conv& c, int oh,
                              int ow) {
  float sum = 0.0f;
  for (int kh = 0; kh < c.kernel; ++kh) {
    const int h = oh * c.stride - c.padding + kh * c.dilation;
    if (h < 0 || h >= c.height) continue;
    for (int kw = 0; kw < c.kernel; ++kw) {
      const int w = ow * c.stride - c.padding + kw * c.dilation;
      if (w < 0 || w >= c.width) continue;
      sum += plane[static_cast<int64_t>(h) * c.width + w] * filter[kh * c.kernel + kw];
    }
  }
  return sum;
}

// Block (kPositions, kRows); dynamic shared memory: channels x kPositions.
__global__ void separable_kernel(const float* __restrict__ x,
                                 const float* __restrict__ depth_weight,
                                 const float* __restrict__ depth_bias,
                                 const float* __restrict__ point_weight,
                                 const float* __restrict__ point_bias, float* __restrict__ y,
                                 Conv c, int tiles) {
  extern __shared__ float middle[];
  const int64_t n = blockIdx.x / tiles;
  const int64_t out_plane = static_cast<int64_t>(c.out_height) * c.out_width;
  const int64_t position =
      static_cast<int64_t>(blockIdx.x % tiles) * kPositions + threadIdx.x;
  const bool inside = position < out_plane;
  const int oh = inside ? position / c.out_width : 0;
  const int ow = inside ? position % c.out_width : 0;

  for (int channel = threadIdx.y; channel < c.channels; channel += kRows) {
    const float* plane = x + (n * c.channels + channel) * c.height * c.width;
    float sum = depth_bias != nullptr ? depth_bias[channel] : 0.0f;
    if (inside) {
      sum += depthwise_at(plane, depth_weight + channel * c.kernel * c.kernel, c, oh, ow);
    }
    middle[channel * kPositions + threadIdx.x] = sum;
  }
  __syncthreads();

  if (!inside) {
    return;
  }
  for (int oc = threadIdx.y; oc < c.out_channels; oc += kRows) {
    const float* row = point_weight + static_cast<int64_t>(oc) * c.channels;
    float sum = point_bias != nullptr ? point_bias[oc] : 0.0f;
    for (int channel = 0; channel < c.channels; ++channel) {
      sum = fmaf(row[channel], middle[channel * kPositions + threadIdx.x], sum);
    }
    y[(n * c.out_channels + oc) * out_plane + position] = sum;
  }
}

static const float* data_or_null(const torch::Tensor& t) {
  return t.numel() > 0 ? t.data_ptr<float>() : nullptr;
}

torch::Tensor separable_conv2d(torch::Tensor x, torch::Tensor depth_weight,
                               torch::Tensor depth_bias, torch::Tensor point_weight,
                               torch::Tensor point_bias, int64_t stride, int64_t padding,
                               int64_t dilation) {
  Conv c;
  c.channels = x.size(1);
  c.height = x.size(2);
  c.width = x.size(3);
  c.out_channels = point_weight.size(0);
  c.kernel = depth_weight.size(2);
  c.stride = stride;
  c.padding = padding;
  c.dilation = dilation;
  const int reach = c.dilation * (c.kernel - 1) + 1;
  c.out_height = (c.height + 2 * c.padding - reach) / c.stride + 1;
  c.out_width = (c.width + 2 * c.padding - reach) / c.stride + 1;
  auto y = torch::empty({x.size(0), c.out_channels, c.out_height, c.out_width}, x.options());
  const size_t shared_bytes = sizeof(float) * c.channels * kPositions;
  TORCH_CHECK(shared_bytes <= 48 * 1024, "too many channels for shared memory");
  const int64_t out_plane = static_cast<int64_t>(c.out_height) * c.out_width;
  const int tiles = (out_plane + kPositions - 1) / kPositions;
  separable_kernel<<<x.size(0) * tiles, dim3(kPositions, kRows), shared_bytes>>>(
      x.data_ptr<float>(), depth_weight.data_ptr<float>(), data_or_null(depth_bias),
      point_weight.data_ptr<float>(), data_or_null(point_bias), y.data_ptr<float>(), c, tiles);
  return y;
}
"""

cpp_source = """
torch::Tensor separable_conv2d(torch::Tensor x, torch::Tensor depth_weight,
                               torch::Tensor depth_bias, torch::Tensor point_weight,
                               torch::Tensor point_bias, int64_t stride, int64_t padding,
                               int64_t dilation);
"""

separable = load_inline(
    name="separable_conv2d_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["separable_conv2d"],
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
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(
            in_channels,
            in_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=in_channels,
            bias=bias,
        )
        self.pointwise = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        nothing = torch.empty(0, device=x.device)
        depth, point = self.depthwise, self.pointwise
        return separable.separable_conv2d(
            x.contiguous(),
            depth.weight,
            nothing if depth.bias is None else depth.bias,
            point.weight,
            nothing if point.bias is None else point.bias,
            depth.stride[0],
            depth.padding[0],
            depth.dilation[0],
        )
