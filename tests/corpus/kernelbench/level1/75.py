# SPDX-License-Identifier: Apache-2.0
"""Transposed convolution in two dimensions, scattered: each input value adds into the output.

The sums meet through atomicAdd on an output that starts as zeros (or as the bias).
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void fill_bias_kernel(float* __restrict__ y, const float* __restrict__ bias,
                                 int channels, int64_t plane, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < total) {
    y[i] = bias[i / plane % channels];
  }
}

// One thread for each input value and each output channel of its group.
__global__ void scatter_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                               float* __restrict__ y, int in_channels, int height, int width,
                               int out_channels, int out_height, int out_width, int kernel_h,
                               int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w,
                               int dilation_h, int dilation_w, int groups, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) {
    return;
  }
  const int out_per_group = out_channels / groups;
  const int w = i % width;
  const int h = i / width % height;
  const int64_t rest = i / width / height;
  const int oc_in_group = rest % out_per_group;
  const int ic = rest / out_per_group % in_channels;
  const int64_t n = rest / out_per_group / in_channels;

  const float value = x[((n * in_channels + ic) * height + h) * width + w];
  const int oc = ic / (in_channels / groups) * out_per_group + oc_in_group;
  const float* filter =
      weight + (static_cast<int64_t>(ic) * out_per_group + oc_in_group) * kernel_h * kernel_w;
  float* plane = y + (n * out_channels + oc) * out_height * out_width;
  for (int kh = 0; kh < kernel_h; ++kh) {
    const int oh = h * stride_h - pad_h + kh * dilation_h;
    if (oh < 0 || oh >= out_height) continue;
    for (int kw = 0; kw < kernel_w; ++kw) {
      const int ow = w * stride_w - pad_w + kw * dilation_w;
      if (ow < 0 || ow >= out_width) continue;
      atomicAdd(&plane[static_cast<int64_t>(oh) * out_width + ow],
                value * filter[kh * kernel_w + kw]);
    }
  }
}

torch::Tensor conv_transpose2d_cuda(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                                    std::vector<int64_t> stride, std::vector<int64_t> padding,
                                    std::vector<int64_t> dilation, int64_t groups) {
  const int64_t batch = x.size(0), in_channels = x.size(1), height = x.size(2);
  const int64_t width = x.size(3), kernel_h = weight.size(2), kernel_w = weight.size(3);
  const int64_t out_channels = weight.size(1) * groups;
  const int64_t out_height =
      (height - 1) * stride[0] - 2 * padding[0] + dilation[0] * (kernel_h - 1) + 1;
  const int64_t out_width =
      (width - 1) * stride[1] - 2 * padding[1] + dilation[1] * (kernel_w - 1) + 1;
  auto y = torch::zeros({batch, out_channels, out_height, out_width}, x.options());
  auto stream = at::cuda::getCurrentCUDAStream();
  if (bias.numel() > 0) {
    const int64_t outputs = y.numel();
    fill_bias_kernel<<<(outputs + 255) / 256, 256, 0, stream>>>(
        y.data_ptr<float>(), bias.data_ptr<float>(), out_channels, out_height * out_width,
        outputs);
  }
  const int64_t total = x.numel() * (out_channels / groups);
  scatter_kernel<<<(total + 255) / 256, 256, 0, stream>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(), in_channels, height,
      width, out_channels, out_height, out_width, kernel_h, kernel_w, stride[0], stride[1],
      padding[0], padding[1], dilation[0], dilation[1], groups, total);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

cpp_source = """
torch::Tensor conv_transpose2d_cuda(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                                    std::vector<int64_t> stride, std::vector<int64_t> padding,
                                    std::vector<int64_t> dilation, int64_t groups);
"""

ext = load_inline(
    name="conv_transpose2d_scatter",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_transpose2d_cuda"],
)


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple,
        stride: tuple = (1, 1),
        padding: tuple = (0, 0),
        dilation: tuple = (1, 1),
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv_transpose2d
        bias = conv.bias if conv.bias is not None else torch.empty(0, device=x.device)
        return ext.conv_transpose2d_cuda(
            x.contiguous(),
            conv.weight,
            bias,
            list(conv.stride),
            list(conv.padding),
            list(conv.dilation),
            conv.groups,
        )
