# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose2d, max pooling, Hardtanh, mean of each plane and tanh, in one kernel.

A block makes one number: its threads share the pooling windows of one plane.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

struct Shape {
  int channels, height, width, out_channels, out_height, out_width;
  int kernel_h, kernel_w, stride, padding;
  int pool, pool_stride, pooled_height, pooled_width;
};

__device__ float conv_transpose_at(const float* image, const float* weight, const Shape& s,
                                   int oc, int oh, int ow) {
  const int64_t plane = static_cast<int64_t>(s.height) * s.width;
  const int taps = s.kernel_h * s.kernel_w;
  float sum = 0.0f;
  for (int kh = 0; kh < s.kernel_h; ++kh) {
    const int h = oh + s.padding - kh;
    if (h < 0 || h % s.stride != 0 || h / s.stride >= s.height) continue;
    for (int kw = 0; kw < s.kernel_w; ++kw) {
      const int w = ow + s.padding - kw;
      if (w < 0 || w % s.stride != 0 || w / s.stride >= s.width) continue;
      const float* in = image + static_cast<int64_t>(h / s.stride) * s.width + w / s.stride;
      const float* tap = weight + static_cast<int64_t>(oc) * taps + kh * s.kernel_w + kw;
      for (int ic = 0; ic < s.channels; ++ic) {
        sum += in[ic * plane] * tap[static_cast<int64_t>(ic) * s.out_channels * taps];
      }
    }
  }
  return sum;
}

__global__ void fused_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias, float* __restrict__ y, Shape s,
                             float low, float high) {
  __shared__ float warp_sums[32];
  const int oc = blockIdx.x % s.out_channels;
  const int64_t n = blockIdx.x / s.out_channels;
  const float* image = x + n * s.channels * s.height * s.width;
  const int windows = s.pooled_height * s.pooled_width;

  float sum = 0.0f;
  for (int i = threadIdx.x; i < windows; i += blockDim.x) {
    const int h_first = i / s.pooled_width * s.pool_stride;
    const int w_first = i % s.pooled_width * s.pool_stride;
    float best = -INFINITY;
    for (int h = h_first; h < h_first + s.pool; ++h) {
      for (int w = w_first; w < w_first + s.pool; ++w) {
        const float v = conv_transpose_at(image, weight, s, oc, h, w) + bias[oc];
        best = (v > best || isnan(v)) ? v : best;
      }
    }
    best = best < low ? low : best;
    sum += best > high ? high : best;
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
  }
  if (threadIdx.x % 32 == 0) {
    warp_sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.0f;
    for (int w = 0; w < blockDim.x / 32; ++w) {
      total += warp_sums[w];
    }
    y[blockIdx.x] = tanhf(total / windows);
  }
}

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t stride,
                      int64_t padding, int64_t pool, int64_t pool_stride, double low,
                      double high) {
  Shape s;
  s.channels = x.size(1);
  s.height = x.size(2);
  s.width = x.size(3);
  s.out_channels = weight.size(1);
  s.kernel_h = weight.size(2);
  s.kernel_w = weight.size(3);
  s.stride = stride;
  s.padding = padding;
  s.out_height = (s.height - 1) * stride - 2 * padding + s.kernel_h;
  s.out_width = (s.width - 1) * stride - 2 * padding + s.kernel_w;
  s.pool = pool;
  s.pool_stride = pool_stride;
  s.pooled_height = (s.out_height - pool) / pool_stride + 1;
  s.pooled_width = (s.out_width - pool) / pool_stride + 1;
  auto y = torch::empty({x.size(0), s.out_channels, 1, 1}, x.options());
  fused_kernel<<<y.numel(), 128>>>(x.data_ptr<float>(), weight.data_ptr<float>(),
                                   bias.data_ptr<float>(), y.data_ptr<float>(), s,
                                   static_cast<float>(low), static_cast<float>(high));
  return y;
}
"""

cpp_source = """
torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t stride,
                      int64_t padding, int64_t pool, int64_t pool_stride, double low,
                      double high);
"""

ext = load_inline(
    name="conv_transpose2d_pool_mean_tanh",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        padding: int,
        maxpool_kernel_size: int,
        maxpool_stride: int,
        hardtanh_min: float,
        hardtanh_max: float,
    ) -> None:
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding
        )
        self.maxpool_kernel_size = maxpool_kernel_size
        self.maxpool_stride = maxpool_stride
        self.hardtanh_min = hardtanh_min
        self.hardtanh_max = hardtanh_max

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv_transpose
        return ext.forward(
            x.contiguous(),
            conv.weight,
            conv.bias,
            conv.stride[0],
            conv.padding[0],
            self.maxpool_kernel_size,
            self.maxpool_stride,
            self.hardtanh_min,
            self.hardtanh_max,
        )
