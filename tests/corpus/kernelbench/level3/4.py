# SPDX-License-Identifier: Apache-2.0
"""LeNet-5: convolution, ReLU and pooling in one kernel, twice; then linear layers, a warp an
output."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// One thread a pooled output: the largest of its four convolution outputs, at least zero.
__global__ void conv_relu_pool_kernel(const float* __restrict__ x,
                                      const float* __restrict__ weight,
                                      const float* __restrict__ bias, float* __restrict__ y,
                                      int channels, int height, int width, int out_channels,
                                      int kernel, int pooled_height, int pooled_width,
                                      int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int pw = i % pooled_width;
  const int ph = i / pooled_width % pooled_height;
  const int oc = i / pooled_width / pooled_height % out_channels;
  const int64_t n = i / pooled_width / pooled_height / out_channels;
  const float* image = x + n * channels * height * width;
  const float* filter = weight + oc * channels * kernel * kernel;
  float best = 0.0f;
  for (int corner = 0; corner < 4; ++corner) {
    const int oh = ph * 2 + corner / 2;
    const int ow = pw * 2 + corner % 2;
    float sum = bias[oc];
    for (int c = 0; c < channels; ++c) {
      for (int kh = 0; kh < kernel; ++kh) {
        for (int kw = 0; kw < kernel; ++kw) {
          sum += image[(c * height + oh + kh) * width + ow + kw] *
                 filter[(c * kernel + kh) * kernel + kw];
        }
      }
    }
    best = (sum > best || isnan(sum)) ? sum : best;
  }
  y[i] = best;
}

// Block (32, 4): a warp makes one output feature of one row.
__global__ void linear_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y,
                              int in_features, int out_features, int64_t total, bool relu) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (i >= total) return;
  const float* row = x + i / out_features * in_features;
  const float* w = weight + i % out_features * in_features;
  float sum = 0.0f;
  for (int k = threadIdx.x; k < in_features; k += 32) {
    sum += row[k] * w[k];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
  }
  if (threadIdx.x == 0) {
    sum += bias[i % out_features];
    y[i] = relu && sum < 0.0f ? 0.0f : sum;
  }
}

torch::Tensor conv_relu_pool(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  const int channels = x.size(1), height = x.size(2), width = x.size(3);
  const int out_channels = weight.size(0), kernel = weight.size(2);
  const int pooled_height = (height - kernel + 1) / 2, pooled_width = (width - kernel + 1) / 2;
  auto y = torch::empty({x.size(0), out_channels, pooled_height, pooled_width}, x.options());
  const int64_t total = y.numel();
  conv_relu_pool_kernel<<<(total + 127) / 128, 128>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
      channels, height, width, out_channels, kernel, pooled_height, pooled_width, total);
  return y;
}

torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, bool relu) {
  const int in_features = weight.size(1), out_features = weight.size(0);
  TORCH_CHECK(x.size(1) == in_features, "expected ", in_features, " features");
  auto y = torch::empty({x.size(0), out_features}, x.options());
  const int64_t total = y.numel();
  linear_kernel<<<(total + 3) / 4, dim3(32, 4)>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
      in_features, out_features, total, relu);
  return y;
}
"""

cpp_source = """
torch::Tensor conv_relu_pool(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);
torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, bool relu);
"""

lenet = load_inline(
    name="lenet5_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_relu_pool", "linear"],
)


class ModelNew(nn.Module):
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels=1, out_channels=6, kernel_size=5, stride=1)
        self.conv2 = nn.Conv2d(in_channels=6, out_channels=16, kernel_size=5, stride=1)
        self.fc1 = nn.Linear(in_features=16 * 5 * 5, out_features=120)
        self.fc2 = nn.Linear(in_features=120, out_features=84)
        self.fc3 = nn.Linear(in_features=84, out_features=num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = lenet.conv_relu_pool(x.contiguous(), self.conv1.weight, self.conv1.bias)
        x = lenet.conv_relu_pool(x, self.conv2.weight, self.conv2.bias)
        x = x.view(-1, 16 * 5 * 5)
        x = lenet.linear(x, self.fc1.weight, self.fc1.bias, True)
        x = lenet.linear(x, self.fc2.weight, self.fc2.bias, True)
        return lenet.linear(x, self.fc3.weight, self.fc3.bias, False)
