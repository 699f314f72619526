# SPDX-License-Identifier: Apache-2.0
"""Average pooling, ConvTranspose3d with clamp, softmax over the volume, scaling by channel."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

struct Size3 {
  int d, h, w;
  __host__ __device__ int64_t volume() const { return static_cast<int64_t>(d) * h * w; }
};

__global__ void avg_pool_kernel(const float* __restrict__ x, float* __restrict__ y, Size3 in,
                                Size3 out, int pool, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int w = i % out.w;
  const int h = i / out.w % out.h;
  const int d = i / out.w / out.h % out.d;
  const float* plane = x + i / out.volume() * in.volume();
  float sum = 0.0f;
  for (int pd = 0; pd < pool; ++pd) {
    for (int ph = 0; ph < pool; ++ph) {
      for (int pw = 0; pw < pool; ++pw) {
        sum += plane[(static_cast<int64_t>(d * pool + pd) * in.h + h * pool + ph) * in.w +
                     w * pool + pw];
      }
    }
  }
  y[i] = sum / (pool * pool * pool);
}

__device__ __forceinline__ int source(int out, int tap, int stride, int padding, int size) {
  const int shifted = out + padding - tap;
  if (shifted < 0 || shifted % stride != 0) return -1;
  return shifted / stride < size ? shifted / stride : -1;
}

__global__ void conv_transpose_clamp_kernel(const float* __restrict__ x,
                                            const float* __restrict__ weight,
                                            const float* __restrict__ bias,
                                            float* __restrict__ y, Size3 in, Size3 out,
                                            int in_channels, int out_channels, int kernel,
                                            int stride, int padding, float low, float high,
                                            int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int ow = i % out.w;
  const int oh = i / out.w % out.h;
  const int od = i / out.w / out.h % out.d;
  const int oc = i / out.volume() % out_channels;
  const int64_t n = i / out.volume() / out_channels;
  const int taps = kernel * kernel * kernel;
  float sum = bias[oc];
  for (int kd = 0; kd < kernel; ++kd) {
    const int d = source(od, kd, stride, padding, in.d);
    if (d < 0) continue;
    for (int kh = 0; kh < kernel; ++kh) {
      const int h = source(oh, kh, stride, padding, in.h);
      if (h < 0) continue;
      for (int kw = 0; kw < kernel; ++kw) {
        const int w = source(ow, kw, stride, padding, in.w);
        if (w < 0) continue;
        const float* value = x + n * in_channels * in.volume() +
                             (static_cast<int64_t>(d) * in.h + h) * in.w + w;
        const float* tap =
            weight + static_cast<int64_t>(oc) * taps + (kd * kernel + kh) * kernel + kw;
        for (int ic = 0; ic < in_channels; ++ic) {
          sum += *value * *tap;
          value += in.volume();
          tap += static_cast<int64_t>(out_channels) * taps;
        }
      }
    }
  }
  sum = sum < low ? low : sum;
  y[i] = sum > high ? high : sum;
}

__device__ float block_reduce(float v, float* shared, float (*combine)(float, float)) {
  const int t = threadIdx.x;
  shared[t] = v;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half >>= 1) {
    if (t < half) {
      shared[t] = combine(shared[t], shared[t + half]);
    }
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

__device__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ float added(float a, float b) { return a + b; }

// A block turns one channel's volume into its softmax, in place, times that channel's factor.
__global__ void softmax_scale_kernel(float* __restrict__ y, const float* __restrict__ scale,
                                     int channels, int64_t volume) {
  extern __shared__ float shared[];
  float* values = y + blockIdx.x * volume;
  float top = -INFINITY;
  for (int64_t i = threadIdx.x; i < volume; i += blockDim.x) {
    top = fmaxf(top, values[i]);
  }
  top = block_reduce(top, shared, larger);
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < volume; i += blockDim.x) {
    const float e = expf(values[i] - top);
    values[i] = e;
    sum += e;
  }
  sum = block_reduce(sum, shared, added);
  const float factor = scale[blockIdx.x % channels] / sum;
  for (int64_t i = threadIdx.x; i < volume; i += blockDim.x) {
    values[i] *= factor;
  }
}

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                      torch::Tensor scale, int64_t pool, int64_t stride, int64_t padding,
                      int64_t output_padding, double low, double high) {
  const int64_t batch = x.size(0);
  const int in_channels = x.size(1), out_channels = weight.size(1), kernel = weight.size(2);
  const Size3 whole = {static_cast<int>(x.size(2)), static_cast<int>(x.size(3)),
                       static_cast<int>(x.size(4))};
  const int p = static_cast<int>(pool);
  const Size3 in = {whole.d / p, whole.h / p, whole.w / p};
  const int grow = static_cast<int>(kernel - 2 * padding + output_padding);
  const int step = static_cast<int>(stride);
  const Size3 out = {(in.d - 1) * step + grow, (in.h - 1) * step + grow, (in.w - 1) * step + grow};

  auto pooled = torch::empty({batch, in_channels, in.d, in.h, in.w}, x.options());
  auto y = torch::empty({batch, out_channels, out.d, out.h, out.w}, x.options());
  auto stream = at::cuda::getCurrentCUDAStream();
  avg_pool_kernel<<<(pooled.numel() + 127) / 128, 128, 0, stream>>>(
      x.data_ptr<float>(), pooled.data_ptr<float>(), whole, in, p, pooled.numel());
  conv_transpose_clamp_kernel<<<(y.numel() + 127) / 128, 128, 0, stream>>>(
      pooled.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
      y.data_ptr<float>(), in, out, in_channels, out_channels, kernel, step,
      static_cast<int>(padding), static_cast<float>(low), static_cast<float>(high), y.numel());
  const int threads = 256;
  softmax_scale_kernel<<<batch * out_channels, threads, threads * sizeof(float), stream>>>(
      y.data_ptr<float>(), scale.data_ptr<float>(), out_channels, out.volume());
  return y;
}
"""

cpp_source = """
torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                      torch::Tensor scale, int64_t pool, int64_t stride, int64_t padding,
                      int64_t output_padding, double low, double high);
"""

ext = load_inline(
    name="pool_conv_transpose3d_softmax",
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
        output_padding: int,
        pool_kernel_size: int,
        clamp_min: float,
        clamp_max: float,
    ) -> None:
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
        )
        self.pool_kernel_size = pool_kernel_size
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max
        self.scale = nn.Parameter(torch.ones(1, out_channels, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv_transpose
        return ext.forward(
            x.contiguous(),
            conv.weight,
            conv.bias,
            self.scale,
            self.pool_kernel_size,
            conv.stride[0],
            conv.padding[0],
            conv.output_padding[0],
            self.clamp_min,
            self.clamp_max,
        )
