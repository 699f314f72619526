# SPDX-License-Identifier: Apache-2.0
"""EfficientNet's MBConv: expand, depthwise and project convolutions, each with batch norm.

A pointwise kernel, a depthwise kernel, and one that normalises in place, with ReLU6 or with
the shortcut.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;
constexpr int kTile = 16;

__global__ void pointwise_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                                 float* __restrict__ y, int channels, int out_channels,
                                 int64_t pixels) {
  __shared__ float w_tile[kTile][kTile];
  __shared__ float x_tile[kTile][kTile];
  const int64_t pixel = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const int oc = blockIdx.y * kTile + threadIdx.y;
  const float* image = x + static_cast<int64_t>(blockIdx.z) * channels * pixels;
  float sum = 0.0f;
  for (int first = 0; first < channels; first += kTile) {
    const int wc = first + threadIdx.x, xc = first + threadIdx.y;
    w_tile[threadIdx.y][threadIdx.x] =
        oc < out_channels && wc < channels ? weight[static_cast<int64_t>(oc) * channels + wc]
                                           : 0.0f;
    x_tile[threadIdx.y][threadIdx.x] =
        xc < channels && pixel < pixels ? image[xc * pixels + pixel] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      sum += w_tile[threadIdx.y][i] * x_tile[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (oc < out_channels && pixel < pixels) {
    y[(static_cast<int64_t>(blockIdx.z) * out_channels + oc) * pixels + pixel] = sum;
  }
}

__global__ void depthwise_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                                 float* __restrict__ y, int channels, int height, int width,
                                 int out_height, int out_width, int kernel, int stride,
                                 int padding, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= total) return;
  const int ow = i % out_width;
  const int oh = i / out_width % out_height;
  const int64_t plane = i / out_width / out_height;
  const float* in = x + plane * height * width;
  const float* filter = weight + plane % channels * kernel * kernel;
  float sum = 0.0f;
  for (int kh = 0; kh < kernel; ++kh) {
    const int h = oh * stride - padding + kh;
    if (h < 0 || h >= height) continue;
    for (int kw = 0; kw < kernel; ++kw) {
      const int w = ow * stride - padding + kw;
      if (w < 0 || w >= width) continue;
      sum += in[static_cast<int64_t>(h) * width + w] * filter[kh * kernel + kw];
    }
  }
  y[i] = sum;
}

__device__ float block_sum(float v) {
  __shared__ float warp_sums[32];
  for (int offset = 16; offset > 0; offset >>= 1) {
    v += __shfl_down_sync(0xffffffffu, v, offset);
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) warp_sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = lane < kThreads / 32 ? warp_sums[lane] : 0.0f;
    for (int offset = 16; offset > 0; offset >>= 1) {
      v += __shfl_down_sync(0xffffffffu, v, offset);
    }
    if (lane == 0) warp_sums[0] = v;
  }
  __syncthreads();
  v = warp_sums[0];
  __syncthreads();
  return v;
}

struct Norm {
  const float* gamma;
  const float* beta;
  float* running_mean;
  float* running_var;
  int64_t* num_batches;
  float eps, momentum;
  bool training;
};

// A block takes one channel of all samples, in place.
__global__ void batch_norm_kernel(float* __restrict__ x, const float* __restrict__ residual,
                                  Norm norm, int batch, int channels, int64_t plane,
                                  bool relu6) {
  const int c = blockIdx.x;
  const int64_t count = batch * plane;
  float mean = norm.running_mean[c], var = norm.running_var[c];
  if (norm.training) {
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += kThreads) {
      sum += x[(i / plane * channels + c) * plane + i % plane];
    }
    mean = block_sum(sum) / count;
    float squares = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += kThreads) {
      const float d = x[(i / plane * channels + c) * plane + i % plane] - mean;
      squares += d * d;
    }
    squares = block_sum(squares);
    var = squares / count;
    if (threadIdx.x == 0) {
      const float m = norm.momentum;
      norm.running_mean[c] = (1.0f - m) * norm.running_mean[c] + m * mean;
      norm.running_var[c] = (1.0f - m) * norm.running_var[c] + m * squares / (count - 1);
      if (c == 0) *norm.num_batches += 1;
    }
  }
  const float factor = norm.gamma[c] * rsqrtf(var + norm.eps);
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const int64_t at = (i / plane * channels + c) * plane + i % plane;
    float v = (x[at] - mean) * factor + norm.beta[c];
    if (relu6) {
      v = v < 0.0f ? 0.0f : (v > 6.0f ? 6.0f : v);
    }
    x[at] = residual == nullptr ? v : v + residual[at];
  }
}

torch::Tensor pointwise(torch::Tensor x, torch::Tensor weight) {
  const int64_t batch = x.size(0), pixels = x.size(2) * x.size(3);
  const int channels = x.size(1), out_channels = weight.size(0);
  auto y = torch::empty({batch, out_channels, x.size(2), x.size(3)}, x.options());
  const dim3 grid((pixels + kTile - 1) / kTile, (out_channels + kTile - 1) / kTile, batch);
  pointwise_kernel<<<grid, dim3(kTile, kTile), 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(), channels, out_channels,
      pixels);
  return y;
}

torch::Tensor depthwise(torch::Tensor x, torch::Tensor weight, int64_t stride, int64_t padding) {
  const int height = x.size(2), width = x.size(3), kernel = weight.size(2);
  const int out_height = (height + 2 * padding - kernel) / stride + 1;
  const int out_width = (width + 2 * padding - kernel) / stride + 1;
  auto y = torch::empty({x.size(0), x.size(1), out_height, out_width}, x.options());
  const int64_t total = y.numel();
  depthwise_kernel<<<(total + kThreads - 1) / kThreads, kThreads, 0,
                     at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(),
      static_cast<int>(x.size(1)), height, width, out_height, out_width, kernel,
      static_cast<int>(stride), static_cast<int>(padding), total);
  return y;
}

void batch_norm_(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta,
                 torch::Tensor running_mean, torch::Tensor running_var,
                 torch::Tensor num_batches, double eps, double momentum, bool training,
                 torch::Tensor residual, bool relu6) {
  Norm norm;
  norm.gamma = gamma.data_ptr<float>();
  norm.beta = beta.data_ptr<float>();
  norm.running_mean = running_mean.data_ptr<float>();
  norm.running_var = running_var.data_ptr<float>();
  norm.num_batches = num_batches.data_ptr<int64_t>();
  norm.eps = static_cast<float>(eps);
  norm.momentum = static_cast<float>(momentum);
  norm.training = training;
  batch_norm_kernel<<<x.size(1), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), residual.numel() > 0 ? residual.data_ptr<float>() : nullptr, norm,
      static_cast<int>(x.size(0)), static_cast<int>(x.size(1)), x.size(2) * x.size(3), relu6);
}
"""

cpp_source = """
torch::Tensor pointwise(torch::Tensor x, torch::Tensor weight);
torch::Tensor depthwise(torch::Tensor x, torch::Tensor weight, int64_t stride, int64_t padding);
void batch_norm_(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta,
                 torch::Tensor running_mean, torch::Tensor running_var,
                 torch::Tensor num_batches, double eps, double momentum, bool training,
                 torch::Tensor residual, bool relu6);
"""

ext = load_inline(
    name="mbconv_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["pointwise", "depthwise", "batch_norm_"],
)


def batch_norm_(
    x: torch.Tensor, bn: nn.BatchNorm2d, residual: torch.Tensor, relu6: bool
) -> torch.Tensor:
    ext.batch_norm_(
        x,
        bn.weight,
        bn.bias,
        bn.running_mean,
        bn.running_var,
        bn.num_batches_tracked,
        bn.eps,
        bn.momentum,
        bn.training,
        residual,
        relu6,
    )
    return x


class ModelNew(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, expand_ratio: int
    ) -> None:
        super().__init__()
        self.use_residual = stride == 1 and in_channels == out_channels
        self.expands = expand_ratio != 1
        hidden = in_channels * expand_ratio
        if self.expands:
            self.expand_conv = nn.Sequential(
                nn.Conv2d(in_channels, hidden, kernel_size=1, bias=False), nn.BatchNorm2d(hidden)
            )
        self.depthwise_conv = nn.Sequential(
            nn.Conv2d(
                hidden,
                hidden,
                kernel_size=kernel_size,
                stride=stride,
                padding=(kernel_size - 1) // 2,
                groups=hidden,
                bias=False,
            ),
            nn.BatchNorm2d(hidden),
        )
        self.project_conv = nn.Sequential(
            nn.Conv2d(hidden, out_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        nothing = torch.empty(0, device=x.device)
        h = x
        if self.expands:
            conv, bn = self.expand_conv
            h = batch_norm_(ext.pointwise(h, conv.weight), bn, nothing, True)
        conv, bn = self.depthwise_conv
        h = ext.depthwise(h, conv.weight, conv.stride[0], conv.padding[0])
        h = batch_norm_(h, bn, nothing, True)
        conv, bn = self.project_conv
        h = ext.pointwise(h, conv.weight)
        return batch_norm_(h, bn, x if self.use_residual else nothing, False)
