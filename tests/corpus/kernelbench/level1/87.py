# SPDX-License-Identifier: Apache-2.0
"""Pointwise convolution as a product of weight and pixels for each sample, in 16 x 16 tiles."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

constexpr int kTile = 16;

// y[n] (out_channels x pixels) = weight (out_channels x channels) * x[n] (channels x pixels).
__global__ void pointwise_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                                 const float* __restrict__ bias, float* __restrict__ y,
                                 int channels, int out_channels, int64_t pixels) {
  __shared__ float w_tile[kTile][kTile + 1];
  __shared__ float x_tile[kTile][kTile];
  const float* image = x + blockIdx.z * channels * pixels;
  float* result = y + blockIdx.z * out_channels * pixels;
  const int64_t pixel = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const int oc = blockIdx.y * kTile + threadIdx.y;
  float sum = 0.0f;
  for (int first = 0; first < channels; first += kTile) {
    const int w_channel = first + threadIdx.x;
    const int x_channel = first + threadIdx.y;
    w_tile[threadIdx.y][threadIdx.x] =
        oc < out_channels && w_channel < channels ? weight[oc * channels + w_channel] : 0.0f;
    x_tile[threadIdx.y][threadIdx.x] =
        x_channel < channels && pixel < pixels ? image[x_channel * pixels + pixel] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      sum += w_tile[threadIdx.y][i] * x_tile[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (oc < out_channels && pixel < pixels) {
    result[oc * pixels + pixel] = bias == nullptr ? sum : sum + bias[oc];
  }
}

torch::Tensor pointwise_conv2d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  const int64_t batch = x.size(0), channels = x.size(1), pixels = x.size(2) * x.size(3);
  const int64_t out_channels = weight.size(0);
  TORCH_CHECK(weight.size(1) == channels, "the weight has other channels than the input");
  auto y = torch::empty({batch, out_channels, x.size(2), x.size(3)}, x.options());
  const dim3 block(kTile, kTile);
  const dim3 grid((pixels + kTile - 1) / kTile, (out_channels + kTile - 1) / kTile, batch);
  pointwise_kernel<<<grid, block>>>(x.data_ptr<float>(), weight.data_ptr<float>(),
                                    bias.numel() > 0 ? bias.data_ptr<float>() : nullptr,
                                    y.data_ptr<float>(), static_cast<int>(channels),
                                    static_cast<int>(out_channels), pixels);
  return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &pointwise_conv2d, "pointwise convolution", py::arg("x"), py::arg("weight"),
        py::arg("bias"));
}
"""

pointwise = load_inline(name="pointwise_ext", cpp_sources=[], cuda_sources=[cuda_source])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, bias: bool = False) -> None:
        super().__init__()
        self.conv1d = nn.Conv2d(
            in_channels, out_channels, kernel_size=1, stride=1, padding=0, bias=bias
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.conv1d.bias
        if bias is None:
            bias = torch.empty(0, device=x.device)
        return pointwise.forward(x=x.contiguous(), weight=self.conv1d.weight, bias=bias)
