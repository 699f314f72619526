# SPDX-License-Identifier: Apache-2.0
"""DenseNet transition: batch norm, ReLU, pointwise convolution, average pooling.

A mean of pixels and a pointwise convolution may change places, so the pooling comes first and
the convolution has a quarter of the work.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;
constexpr int kTile = 16;

__device__ float block_sum(float v) {
  __shared__ float values[kThreads];
  values[threadIdx.x] = v;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half >>= 1) {
    if (threadIdx.x < half) {
      values[threadIdx.x] += values[threadIdx.x + half];
    }
    __syncthreads();
  }
  const float total = values[0];
  __syncthreads();
  return total;
}

// Training: a block takes a channel, leaves mean and 1 / deviation, updates the running pair.
__global__ void batch_stats_kernel(const float* __restrict__ x, float* __restrict__ mean_out,
                                   float* __restrict__ rstd_out, float* running_mean,
                                   float* running_var, int64_t* num_batches, int batch,
                                   int channels, int64_t plane, float eps, float momentum) {
  const int c = blockIdx.x;
  const int64_t count = batch * plane;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    sum += x[(i / plane * channels + c) * plane + i % plane];
  }
  const float mean = block_sum(sum) / count;
  float squares = 0.0f;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const float d = x[(i / plane * channels + c) * plane + i % plane] - mean;
    squares += d * d;
  }
  squares = block_sum(squares);
  if (threadIdx.x == 0) {
    mean_out[c] = mean;
    rstd_out[c] = rsqrtf(squares / count + eps);
    running_mean[c] = (1.0f - momentum) * running_mean[c] + momentum * mean;
    running_var[c] = (1.0f - momentum) * running_var[c] + momentum * squares / (count - 1);
    if (c == 0) {
      *num_batches += 1;
    }
  }
}

// Evaluation: the same two numbers from the running statistics.
__global__ void stored_stats_kernel(const float* __restrict__ running_mean,
                                    const float* __restrict__ running_var,
                                    float* __restrict__ mean_out, float* __restrict__ rstd_out,
                                    int channels, float eps) {
  const int c = blockIdx.x * kThreads + threadIdx.x;
  if (c < channels) {
    mean_out[c] = running_mean[c];
    rstd_out[c] = rsqrtf(running_var[c] + eps);
  }
}

__global__ void norm_relu_pool_kernel(const float* __restrict__ x, const float* __restrict__ mean,
                                      const float* __restrict__ rstd,
                                      const float* __restrict__ gamma,
                                      const float* __restrict__ beta, float* __restrict__ y,
                                      int channels, int height, int width, int out_height,
                                      int out_width, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= total) return;
  const int ow = i % out_width;
  const int oh = i / out_width % out_height;
  const int64_t plane = i / out_width / out_height;
  const int c = plane % channels;
  const float factor = rstd[c] * gamma[c];
  float sum = 0.0f;
  for (int corner = 0; corner < 4; ++corner) {
    const int h = oh * 2 + corner / 2, w = ow * 2 + corner % 2;
    const float v = (x[(plane * height + h) * width + w] - mean[c]) * factor + beta[c];
    sum += v < 0.0f ? 0.0f : v;
  }
  y[i] = 0.25f * sum;
}

__global__ void pointwise_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                                 float* __restrict__ y, int channels, int out_channels,
                                 int64_t pixels) {
  __shared__ float w_tile[kTile][kTile];
  __shared__ float x_tile[kTile][kTile];
  const int64_t pixel = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const int oc = blockIdx.y * kTile + threadIdx.y;
  const int64_t n = blockIdx.z;
  float sum = 0.0f;
  for (int first = 0; first < channels; first += kTile) {
    const int wc = first + threadIdx.x, xc = first + threadIdx.y;
    w_tile[threadIdx.y][threadIdx.x] =
        oc < out_channels && wc < channels ? weight[oc * channels + wc] : 0.0f;
    x_tile[threadIdx.y][threadIdx.x] =
        xc < channels && pixel < pixels ? x[(n * channels + xc) * pixels + pixel] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += w_tile[threadIdx.y][i] * x_tile[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (oc < out_channels && pixel < pixels) {
    y[(n * out_channels + oc) * pixels + pixel] = sum;
  }
}

torch::Tensor transition(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta,
                         torch::Tensor running_mean, torch::Tensor running_var,
                         torch::Tensor num_batches, double eps, double momentum, bool training,
                         torch::Tensor weight) {
  const int64_t batch = x.size(0);
  const int channels = x.size(1), height = x.size(2), width = x.size(3);
  const int out_height = height / 2, out_width = width / 2, out_channels = weight.size(0);
  auto mean = torch::empty({channels}, x.options());
  auto rstd = torch::empty({channels}, x.options());
  auto pooled = torch::empty({batch, channels, out_height, out_width}, x.options());
  auto y = torch::empty({batch, out_channels, out_height, out_width}, x.options());
  auto stream = at::cuda::getCurrentCUDAStream();
  if (training) {
    batch_stats_kernel<<<channels, kThreads, 0, stream>>>(
        x.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(),
        running_mean.data_ptr<float>(), running_var.data_ptr<float>(),
        num_batches.data_ptr<int64_t>(), static_cast<int>(batch), channels,
        static_cast<int64_t>(height) * width, static_cast<float>(eps),
        static_cast<float>(momentum));
  } else {
    stored_stats_kernel<<<(channels + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
        running_mean.data_ptr<float>(), running_var.data_ptr<float>(), mean.data_ptr<float>(),
        rstd.data_ptr<float>(), channels, static_cast<float>(eps));
  }
  const int64_t total = pooled.numel();
  norm_relu_pool_kernel<<<(total + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
      x.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(),
      gamma.data_ptr<float>(), beta.data_ptr<float>(), pooled.data_ptr<float>(), channels, height,
      width, out_height, out_width, total);
  const int64_t pixels = static_cast<int64_t>(out_height) * out_width;
  const dim3 grid((pixels + kTile - 1) / kTile, (out_channels + kTile - 1) / kTile, batch);
  pointwise_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(
      pooled.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(), channels,
      out_channels, pixels);
  return y;
}
"""

cpp_source = """
torch::Tensor transition(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta,
                         torch::Tensor running_mean, torch::Tensor running_var,
                         torch::Tensor num_batches, double eps, double momentum, bool training,
                         torch::Tensor weight);
"""

ext = load_inline(
    name="dense_transition",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["transition"],
)


class ModelNew(nn.Module):
    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.transition = nn.Sequential(
            nn.BatchNorm2d(num_input_features),
            nn.ReLU(inplace=True),
            nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False),
            nn.AvgPool2d(kernel_size=2, stride=2),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bn, conv = self.transition[0], self.transition[2]
        return ext.transition(
            x.contiguous(),
            bn.weight,
            bn.bias,
            bn.running_mean,
            bn.running_var,
            bn.num_batches_tracked,
            bn.eps,
            bn.momentum,
            bn.training,
            conv.weight,
        )
