# SPDX-License-Identifier: Apache-2.0
"""Batched product with a shared right side: one GEMM over N * M rows.

Tiles of 64 x 64 in shared memory, 4 x 4 outputs in the registers of each of 256 threads.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kPer = 4;

__global__ void __launch_bounds__(256)
gemm_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
            int64_t rows, int64_t cols, int64_t depth) {
  __shared__ float a_tile[kDepth][kTile + 1];
  __shared__ float b_tile[kDepth][kTile];
  const int64_t row_first = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t col_first = static_cast<int64_t>(blockIdx.y) * kTile;
  const int tid = threadIdx.x;
  const int my_row = tid / 16 * kPer;
  const int my_col = tid % 16 * kPer;
  float acc[kPer][kPer] = {};

  for (int64_t start = 0; start < depth; start += kDepth) {
    for (int i = tid; i < kTile * kDepth; i += 256) {
      const int r = i / kDepth, d = i % kDepth;
      const bool inside = row_first + r < rows && start + d < depth;
      a_tile[d][r] = inside ? a[(row_first + r) * depth + start + d] : 0.0f;
    }
    for (int i = tid; i < kTile * kDepth; i += 256) {
      const int d = i / kTile, col = i % kTile;
      const bool inside = col_first + col < cols && start + d < depth;
      b_tile[d][col] = inside ? b[(start + d) * cols + col_first + col] : 0.0f;
    }
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      float left[kPer], right[kPer];
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        left[i] = a_tile[d][my_row + i];
        right[i] = b_tile[d][my_col + i];
      }
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
#pragma unroll
        for (int j = 0; j < kPer; ++j) {
          acc[i][j] = fmaf(left[i], right[j], acc[i][j]);
        }
      }
    }
    __syncthreads();
  }

  for (int i = 0; i < kPer; ++i) {
    for (int j = 0; j < kPer; ++j) {
      const int64_t row = row_first + my_row + i;
      const int64_t col = col_first + my_col + j;
      if (row < rows && col < cols) {
        c[row * cols + col] = acc[i][j];
      }
    }
  }
}

torch::Tensor batched_matmul(torch::Tensor a, torch::Tensor b) {
  const int64_t rows = a.size(0) * a.size(1), depth = a.size(2), cols = b.size(1);
  auto c = torch::empty({a.size(0), a.size(1), cols}, a.options());
  const dim3 grid((rows + kTile - 1) / kTile, (cols + kTile - 1) / kTile);
  gemm_kernel<<<grid, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), rows, cols, depth);
  return c;
}
"""

gemm = load_inline(
    name="tensor3d_matmul",
    cpp_sources="torch::Tensor batched_matmul(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["batched_matmul"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return gemm.batched_matmul(A.contiguous(), B.contiguous())
