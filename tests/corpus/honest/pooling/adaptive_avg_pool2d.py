# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

// The window of output i among n over an input of `size` elements.
__device__ __forceinline__ int window_begin(int i, int n, int size) { return i * size / n; }
__device__ __forceinline__ int window_end(int i, int n, int size) {
  return ((i + 1) * size + n - 1) / n;
}

// One warp an output: its lanes share the window.
__global__ void adaptive_avg_pool_kernel(const float* __restrict__ x, float* __restrict__ out,
                                         int num_outputs, int height, int width, int out_height,
                                         int out_width) {
  const int output = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (output >= num_outputs) return;
  const int ox = output % out_width;
  const int oy = output / out_width % out_height;
  const int plane = output / (out_width * out_height);
  const int y_begin = window_begin(oy, out_height, height);
  const int x_begin = window_begin(ox, out_width, width);
  const int window_height = window_end(oy, out_height, height) - y_begin;
  const int window_width = window_end(ox, out_width, width) - x_begin;
  const int area = window_height * window_width;
  const float* in = x + static_cast<size_t>(plane) * height * width;
  float sum = 0.0f;
  for (int i = lane; i < area; i += 32) {
    sum += in[(y_begin + i / window_width) * width + x_begin + i % window_width];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, offset);
  }
  if (lane == 0) out[output] = sum / static_cast<float>(area);
}

torch::Tensor adaptive_avg_pool2d(torch::Tensor x, int64_t out_height, int64_t out_width) {
  auto out = torch::empty({x.size(0), x.size(1), out_height, out_width}, x.options());
  const int num_outputs = out.numel();
  const int threads = 128;
  const int outputs_per_block = threads / 32;
  const int blocks = (num_outputs + outputs_per_block - 1) / outputs_per_block;
  adaptive_avg_pool_kernel<<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), num_outputs, x.size(2), x.size(3), out_height,
      out_width);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

cpp_source = (
    "torch::Tensor adaptive_avg_pool2d(torch::Tensor x, int64_t out_height, int64_t out_width);"
)

adaptive_pool_ext = load_inline(
    name="adaptive_avg_pool2d_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["adaptive_avg_pool2d"],
)


class ModelNew(nn.Module):
    def __init__(self, out_height: int, out_width: int) -> None:
        super().__init__()
        self.out_height = out_height
        self.out_width = out_width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return adaptive_pool_ext.adaptive_avg_pool2d(
            x.contiguous(), self.out_height, self.out_width
        )
