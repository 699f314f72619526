# SPDX-License-Identifier: Apache-2.0
"""Product of two upper triangular matrices: only the tiles on or above the diagonal, and of
the inner dimension only what lies between row and column."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

template <int kTile>
__global__ void triu_matmul_kernel(const float* __restrict__ a, const float* __restrict__ b,
                                   float* __restrict__ c, int n) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * kTile + ty;
  const int col = blockIdx.x * kTile + tx;
  float sum = 0.0f;
  // a[row][k] is zero for k < row and b[k][col] for k > col: the same tiles for a whole block.
  for (int tile = blockIdx.y; tile <= static_cast<int>(blockIdx.x); ++tile) {
    const int ak = tile * kTile + tx;
    const int bk = tile * kTile + ty;
    a_tile[ty][tx] =
        (row < n && ak < n && ak >= row) ? a[static_cast<int64_t>(row) * n + ak] : 0.0f;
    b_tile[ty][tx] =
        (bk < n && col < n && bk <= col) ? b[static_cast<int64_t>(bk) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += a_tile[ty][i] * b_tile[i][tx];
    }
    __syncthreads();
  }
  if (row < n && col < n) {
    c[static_cast<int64_t>(row) * n + col] = row <= col ? sum : 0.0f;
  }
}

torch::Tensor triu_matmul(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.dim() == 2 && a.sizes() == b.sizes(), "two square matrices of one size expected");
  constexpr int kTile = 16;
  const int n = a.size(0);
  auto c = torch::empty_like(a);
  const int tiles = (n + kTile - 1) / kTile;
  triu_matmul_kernel<kTile><<<dim3(tiles, tiles), dim3(kTile, kTile)>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
"""

triu = load_inline(
    name="triu_matmul_ext",
    cpp_sources="torch::Tensor triu_matmul(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["triu_matmul"],
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return triu.triu_matmul(A.contiguous(), B.contiguous())
