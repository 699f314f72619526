# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

constexpr int TILE_M = 8;
constexpr int TILE_N = 32;
constexpr int TILE_K = 32;

__device__ __forceinline__ float gelu_exact(float v) {
  return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
}

// out = x + gelu(x W^T + b), in one kernel. A block of 32 x 8 threads makes 8 x 32 outputs.
__global__ void linear_gelu_residual_kernel(const float* __restrict__ x,
                                            const float* __restrict__ weight,
                                            const float* __restrict__ bias,
                                            float* __restrict__ out, int tokens, int features) {
  __shared__ float x_tile[TILE_M][TILE_K];
  __shared__ float w_tile[TILE_N][TILE_K + 1];
  const int m = blockIdx.y * TILE_M + threadIdx.y;
  const int n = blockIdx.x * TILE_N + threadIdx.x;
  float sum = 0.0f;
  for (int first = 0; first < features; first += TILE_K) {
    const int k = first + threadIdx.x;
    x_tile[threadIdx.y][threadIdx.x] = m < tokens && k < features ? x[m * features + k] : 0.0f;
    for (int row = threadIdx.y; row < TILE_N; row += TILE_M) {
      const int w_row = blockIdx.x * TILE_N + row;
      w_tile[row][threadIdx.x] =
          w_row < features && k < features ? weight[w_row * features + k] : 0.0f;
    }
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < TILE_K; ++i) sum += x_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
    __syncthreads();
  }
  if (m < tokens && n < features) {
    out[m * features + n] = x[m * features + n] + gelu_exact(sum + bias[n]);
  }
}

torch::Tensor linear_gelu_residual(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  const int tokens = x.size(0), features = x.size(1);
  TORCH_CHECK(weight.size(0) == features && weight.size(1) == features, "weight must be square");
  auto out = torch::empty_like(x);
  const dim3 block(TILE_N, TILE_M);
  const dim3 grid((features + TILE_N - 1) / TILE_N, (tokens + TILE_M - 1) / TILE_M);
  linear_gelu_residual_kernel<<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
      out.data_ptr<float>(), tokens, features);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

cpp_source = """
torch::Tensor linear_gelu_residual(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);
"""

block_ext = load_inline(
    name="linear_gelu_residual_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["linear_gelu_residual"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return block_ext.linear_gelu_residual(x.contiguous(), self.linear.weight, self.linear.bias)
