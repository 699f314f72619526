# SPDX-License-Identifier: Apache-2.0
"""Inception module: every branch writes its own channels of the output, so nothing is joined."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 128;

// Stride 1, "same" padding.  Writes channels first_channel and on of an output that has
// y_channels of them.  Grid: (pixels, output channel, sample).
__global__ void conv_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                            const float* __restrict__ bias, float* __restrict__ y, int channels,
                            int height, int width, int kernel, int padding, int y_channels,
                            int first_channel) {
  const int pixels = height * width;
  const int pixel = blockIdx.x * kThreads + threadIdx.x;
  if (pixel >= pixels) return;
  const int oc = blockIdx.y;
  const int64_t n = blockIdx.z;
  const int oh = pixel / width, ow = pixel % width;
  const float* filter = weight + static_cast<int64_t>(oc) * channels * kernel * kernel;
  const float* image = x + n * channels * pixels;
  float sum = bias[oc];
  for (int c = 0; c < channels; ++c) {
    for (int kh = 0; kh < kernel; ++kh) {
      const int h = oh + kh - padding;
      if (h < 0 || h >= height) continue;
      for (int kw = 0; kw < kernel; ++kw) {
        const int w = ow + kw - padding;
        if (w < 0 || w >= width) continue;
        sum += image[static_cast<int64_t>(c) * pixels + h * width + w] *
               filter[(c * kernel + kh) * kernel + kw];
      }
    }
  }
  y[(n * y_channels + first_channel + oc) * pixels + pixel] = sum;
}

__global__ void max_pool_kernel(const float* __restrict__ x, float* __restrict__ y, int height,
                                int width, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= total) return;
  const int ow = i % width;
  const int oh = i / width % height;
  const float* plane = x + i / width / height * height * width;
  float best = -INFINITY;
  for (int h = max(oh - 1, 0); h <= min(oh + 1, height - 1); ++h) {
    for (int w = max(ow - 1, 0); w <= min(ow + 1, width - 1); ++w) {
      const float v = plane[static_cast<int64_t>(h) * width + w];
      best = (v > best || isnan(v)) ? v : best;
    }
  }
  y[i] = best;
}

void conv_into(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, torch::Tensor y,
               int64_t first_channel) {
  const int channels = x.size(1), height = x.size(2), width = x.size(3);
  const int kernel = weight.size(2);
  const dim3 grid((height * width + kThreads - 1) / kThreads, weight.size(0), x.size(0));
  conv_kernel<<<grid, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
      channels, height, width, kernel, kernel / 2, static_cast<int>(y.size(1)),
      static_cast<int>(first_channel));
}

torch::Tensor max_pool3x3(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t total = x.numel();
  max_pool_kernel<<<(total + kThreads - 1) / kThreads, kThreads, 0,
                    at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), static_cast<int>(x.size(2)),
      static_cast<int>(x.size(3)), total);
  return y;
}
"""

cpp_source = """
void conv_into(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, torch::Tensor y,
               int64_t first_channel);
torch::Tensor max_pool3x3(torch::Tensor x);
"""

inception = load_inline(
    name="inception_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_into", "max_pool3x3"],
)


def conv_to_new(x: torch.Tensor, conv: nn.Conv2d) -> torch.Tensor:
    y = x.new_empty((x.size(0), conv.out_channels, x.size(2), x.size(3)))
    inception.conv_into(x, conv.weight, conv.bias, y, 0)
    return y


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_1x1: int,
        reduce_3x3: int,
        out_3x3: int,
        reduce_5x5: int,
        out_5x5: int,
        pool_proj: int,
    ) -> None:
        super().__init__()
        self.branch1x1 = nn.Conv2d(in_channels, out_1x1, kernel_size=1)
        self.branch3x3 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_3x3, kernel_size=1),
            nn.Conv2d(reduce_3x3, out_3x3, kernel_size=3, padding=1),
        )
        self.branch5x5 = nn.Sequential(
            nn.Conv2d(in_channels, reduce_5x5, kernel_size=1),
            nn.Conv2d(reduce_5x5, out_5x5, kernel_size=5, padding=2),
        )
        self.branch_pool = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1),
            nn.Conv2d(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        sources = [
            (x, self.branch1x1),
            (conv_to_new(x, self.branch3x3[0]), self.branch3x3[1]),
            (conv_to_new(x, self.branch5x5[0]), self.branch5x5[1]),
            (inception.max_pool3x3(x), self.branch_pool[1]),
        ]
        channels = sum(conv.out_channels for _, conv in sources)
        y = torch.empty(
            (x.size(0), channels, x.size(2), x.size(3)), dtype=x.dtype, device=x.device
        )
        first = 0
        for source, conv in sources:
            inception.conv_into(source, conv.weight, conv.bias, y, first)
            first += conv.out_channels
        return y
