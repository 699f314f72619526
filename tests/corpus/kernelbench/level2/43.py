# SPDX-License-Identifier: Apache-2.0
"""Conv3d, max pooling by two, logsumexp over the channels and ReLU, in one kernel.

A block makes 32 pooled positions; eight threads share the channels of each, and their
running (maximum, sum) pairs are merged in shared memory.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

constexpr int kPositions = 32;
constexpr int kParts = 8;

struct Conv {
  int channels, depth, height, width, out_channels;
  int kernel, stride, padding;
  int pooled_depth, pooled_height, pooled_width;
};

__device__ float conv_at(const float* volume, const float* filter, const Conv& c, int od, int oh,
                         int ow) {
  float sum = 0.0f;
  for (int ic = 0; ic < c.channels; ++ic) {
    for (int kd = 0; kd < c.kernel; ++kd) {
      const int d = od * c.stride - c.padding + kd;
      if (d < 0 || d >= c.depth) continue;
      for (int kh = 0; kh < c.kernel; ++kh) {
        const int h = oh * c.stride - c.padding + kh;
        if (h < 0 || h >= c.height) continue;
        for (int kw = 0; kw < c.kernel; ++kw) {
          const int w = ow * c.stride - c.padding + kw;
          if (w < 0 || w >= c.width) continue;
          sum += volume[((static_cast<int64_t>(ic) * c.depth + d) * c.height + h) * c.width + w] *
                 filter[((ic * c.kernel + kd) * c.kernel + kh) * c.kernel + kw];
        }
      }
    }
  }
  return sum;
}

__global__ void fused_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                             const float* __restrict__ bias, float* __restrict__ y, Conv c,
                             int64_t total) {
  __shared__ float tops[kParts][kPositions];
  __shared__ float sums[kParts][kPositions];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kPositions + threadIdx.x;
  float top = -INFINITY;
  float sum = 0.0f;
  if (i < total) {
    const int pw = i % c.pooled_width;
    const int ph = i / c.pooled_width % c.pooled_height;
    const int pd = i / c.pooled_width / c.pooled_height % c.pooled_depth;
    const int64_t n = i / c.pooled_width / c.pooled_height / c.pooled_depth;
    const float* volume = x + n * c.channels * c.depth * c.height * c.width;
    const int64_t taps = static_cast<int64_t>(c.channels) * c.kernel * c.kernel * c.kernel;
    for (int oc = threadIdx.y; oc < c.out_channels; oc += kParts) {
      float best = -INFINITY;
      for (int corner = 0; corner < 8; ++corner) {
        best = fmaxf(best, conv_at(volume, weight + oc * taps, c, pd * 2 + corner / 4,
                                   ph * 2 + corner / 2 % 2, pw * 2 + corner % 2));
      }
      best += bias[oc];
      const float new_top = fmaxf(top, best);
      sum = sum * expf(top - new_top) + expf(best - new_top);
      top = new_top;
    }
  }
  tops[threadIdx.y][threadIdx.x] = top;
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && i < total) {
    for (int part = 1; part < kParts; ++part) {
      top = fmaxf(top, tops[part][threadIdx.x]);
    }
    sum = 0.0f;
    for (int part = 0; part < kParts; ++part) {
      if (sums[part][threadIdx.x] > 0.0f) {
        sum += sums[part][threadIdx.x] * expf(tops[part][threadIdx.x] - top);
      }
    }
    const float v = top + logf(sum);
    y[i] = v < 0.0f ? 0.0f : v;
  }
}

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t stride,
                      int64_t padding) {
  Conv c;
  c.channels = x.size(1);
  c.depth = x.size(2);
  c.height = x.size(3);
  c.width = x.size(4);
  c.out_channels = weight.size(0);
  c.kernel = weight.size(2);
  c.stride = stride;
  c.padding = padding;
  c.pooled_depth = ((c.depth + 2 * c.padding - c.kernel) / c.stride + 1) / 2;
  c.pooled_height = ((c.height + 2 * c.padding - c.kernel) / c.stride + 1) / 2;
  c.pooled_width = ((c.width + 2 * c.padding - c.kernel) / c.stride + 1) / 2;
  auto y = torch::empty({x.size(0), 1, c.pooled_depth, c.pooled_height, c.pooled_width},
                        x.options());
  const int64_t total = y.numel();
  fused_kernel<<<(total + kPositions - 1) / kPositions, dim3(kPositions, kParts)>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
      c, total);
  return y;
}
"""

cpp_source = """
torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t stride,
                      int64_t padding);
"""

ext = load_inline(
    name="conv3d_pool_logsumexp_relu",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int
    ) -> None:
        super().__init__()
        self.conv = nn.Conv3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv
        return ext.forward(
            x.contiguous(), conv.weight, conv.bias, conv.stride[0], conv.padding[0]
        )
