# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose3d, add a number, LayerNorm over the width, average pooling, GELU.

Three kernels: the transposed convolution with the addition, the norm with a warp a row, and
the pooling with the activation.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

struct Shape {
  int in_channels, out_channels;
  int in[3], out[3], kernel[3], stride[3], padding[3];
};

__device__ __forceinline__ int source(const Shape& s, int axis, int o, int k) {
  const int shifted = o + s.padding[axis] - k;
  if (shifted < 0 || shifted % s.stride[axis] != 0) return -1;
  const int position = shifted / s.stride[axis];
  return position < s.in[axis] ? position : -1;
}

__global__ void conv_transpose_add_kernel(const float* __restrict__ x,
                                          const float* __restrict__ weight,
                                          const float* __restrict__ bias,
                                          const float* __restrict__ addend,
                                          float* __restrict__ y, Shape s, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int64_t rest = i;
  const int ow = rest % s.out[2];
  rest /= s.out[2];
  const int oh = rest % s.out[1];
  rest /= s.out[1];
  const int od = rest % s.out[0];
  rest /= s.out[0];
  const int oc = rest % s.out_channels;
  const int64_t n = rest / s.out_channels;
  const int taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t volume = static_cast<int64_t>(s.in[0]) * s.in[1] * s.in[2];

  float sum = bias[oc];
  for (int kd = 0; kd < s.kernel[0]; ++kd) {
    const int d = source(s, 0, od, kd);
    if (d < 0) continue;
    for (int kh = 0; kh < s.kernel[1]; ++kh) {
      const int h = source(s, 1, oh, kh);
      if (h < 0) continue;
      for (int kw = 0; kw < s.kernel[2]; ++kw) {
        const int w = source(s, 2, ow, kw);
        if (w < 0) continue;
        const float* in = x + n * s.in_channels * volume +
                          (static_cast<int64_t>(d) * s.in[1] + h) * s.in[2] + w;
        const float* tap =
            weight + static_cast<int64_t>(oc) * taps + (kd * s.kernel[1] + kh) * s.kernel[2] + kw;
        for (int ic = 0; ic < s.in_channels; ++ic) {
          sum += in[ic * volume] * tap[static_cast<int64_t>(ic) * s.out_channels * taps];
        }
      }
    }
  }
  y[i] = sum + *addend;
}

__device__ __forceinline__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, offset);
  }
  return v;
}

// Block (32, 4): a warp normalises one row of n values in place.
__global__ void layer_norm_rows_kernel(float* __restrict__ x, const float* __restrict__ gamma,
                                       const float* __restrict__ beta, int64_t rows, int n,
                                       float eps) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float* values = x + row * n;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) sum += values[i];
  const float mean = warp_sum(sum) / n;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    squares += (values[i] - mean) * (values[i] - mean);
  }
  const float rstd = rsqrtf(warp_sum(squares) / n + eps);
  for (int i = threadIdx.x; i < n; i += 32) {
    values[i] = (values[i] - mean) * rstd * gamma[i] + beta[i];
  }
}

__global__ void avg_pool_gelu_kernel(const float* __restrict__ x, float* __restrict__ y, int depth,
                                     int height, int width, int out_depth, int out_height,
                                     int out_width, int pd, int ph, int pw, int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int ow = i % out_width;
  const int oh = i / out_width % out_height;
  const int od = i / out_width / out_height % out_depth;
  const int64_t plane = i / out_width / out_height / out_depth;
  float sum = 0.0f;
  for (int d = od * pd; d < (od + 1) * pd; ++d) {
    for (int h = oh * ph; h < (oh + 1) * ph; ++h) {
      for (int w = ow * pw; w < (ow + 1) * pw; ++w) {
        sum += x[((plane * depth + d) * height + h) * width + w];
      }
    }
  }
  const float mean = sum / (pd * ph * pw);
  y[i] = 0.5f * mean * (1.0f + erff(mean * 0.70710678118654752f));
}

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                      torch::Tensor addend, torch::Tensor gamma, torch::Tensor beta, double eps,
                      std::vector<int64_t> stride, std::vector<int64_t> padding,
                      std::vector<int64_t> output_padding, std::vector<int64_t> pool) {
  Shape s;
  s.in_channels = x.size(1);
  s.out_channels = weight.size(1);
  for (int axis = 0; axis < 3; ++axis) {
    s.in[axis] = x.size(2 + axis);
    s.kernel[axis] = weight.size(2 + axis);
    s.stride[axis] = stride[axis];
    s.padding[axis] = padding[axis];
    s.out[axis] = (s.in[axis] - 1) * s.stride[axis] - 2 * s.padding[axis] + s.kernel[axis] +
                  output_padding[axis];
  }
  TORCH_CHECK(gamma.numel() == s.out[2], "the norm is over the width");
  auto stream = at::cuda::getCurrentCUDAStream();
  const int64_t batch = x.size(0);
  auto middle =
      torch::empty({batch, s.out_channels, s.out[0], s.out[1], s.out[2]}, x.options());
  const int64_t total = middle.numel();
  conv_transpose_add_kernel<<<(total + 127) / 128, 128, 0, stream>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
      addend.data_ptr<float>(), middle.data_ptr<float>(), s, total);
  const int64_t rows = total / s.out[2];
  layer_norm_rows_kernel<<<(rows + 3) / 4, dim3(32, 4), 0, stream>>>(
      middle.data_ptr<float>(), gamma.data_ptr<float>(), beta.data_ptr<float>(), rows, s.out[2],
      static_cast<float>(eps));
  const int od = s.out[0] / pool[0], oh = s.out[1] / pool[1], ow = s.out[2] / pool[2];
  auto y = torch::empty({batch, s.out_channels, od, oh, ow}, x.options());
  const int64_t outputs = y.numel();
  avg_pool_gelu_kernel<<<(outputs + 127) / 128, 128, 0, stream>>>(
      middle.data_ptr<float>(), y.data_ptr<float>(), s.out[0], s.out[1], s.out[2], od, oh, ow,
      static_cast<int>(pool[0]), static_cast<int>(pool[1]), static_cast<int>(pool[2]), outputs);
  return y;
}
"""

cpp_source = """
torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                      torch::Tensor addend, torch::Tensor gamma, torch::Tensor beta, double eps,
                      std::vector<int64_t> stride, std::vector<int64_t> padding,
                      std::vector<int64_t> output_padding, std::vector<int64_t> pool);
"""

ext = load_inline(
    name="conv_transpose3d_norm_pool_gelu",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["forward"],
)


def triple(value: int | tuple[int, ...]) -> list[int]:
    return [value] * 3 if isinstance(value, int) else list(value)


class ModelNew(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple,
        stride: tuple,
        padding: tuple,
        output_padding: tuple,
        sum_weight: float,
        norm_shape: tuple,
        pool_kernel_size: tuple,
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
        self.sum_weight = nn.Parameter(torch.tensor(sum_weight))
        self.norm = nn.LayerNorm(norm_shape)
        self.pool_kernel_size = triple(pool_kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv_transpose
        return ext.forward(
            x.contiguous(),
            conv.weight,
            conv.bias,
            self.sum_weight,
            self.norm.weight,
            self.norm.bias,
            self.norm.eps,
            list(conv.stride),
            list(conv.padding),
            list(conv.output_padding),
            self.pool_kernel_size,
        )
