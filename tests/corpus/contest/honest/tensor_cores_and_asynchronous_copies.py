# SPDX-License-Identifier: Apache-2.0
# id: L02
# task: matmul/bfloat16
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""A product of bfloat16 matrices by wmma, whose tiles are copied by the pipeline's primitives."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

using namespace nvcuda;

__global__ void product_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                               int m, int depth, int n) {
  __shared__ __nv_bfloat16 ta[256], tb[256];
  __shared__ float tc[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  const int row0 = blockIdx.y * 16, column0 = blockIdx.x * 16;
  for (int k0 = 0; k0 < depth; k0 += 16) {
    for (int i = threadIdx.x; i < 128; i += 32) {
      const int r = i / 8, q = i % 8 * 2;
      const bool has_a = row0 + r < m && k0 + q + 1 < depth && depth % 2 == 0;
      const bool has_b = k0 + r < depth && column0 + q + 1 < n && n % 2 == 0;
      if (has_a) {
        __pipeline_memcpy_async(&ta[r * 16 + q], &a[(row0 + r) * depth + k0 + q], 4);
      } else {
        for (int j = 0; j < 2; ++j) {
          const bool is_inside = row0 + r < m && k0 + q + j < depth;
          ta[r * 16 + q + j] =
              is_inside ? a[(row0 + r) * depth + k0 + q + j] : __float2bfloat16(0.0f);
        }
      }
      if (has_b) {
        __pipeline_memcpy_async(&tb[r * 16 + q], &b[(k0 + r) * n + column0 + q], 4);
      } else {
        for (int j = 0; j < 2; ++j) {
          const bool is_inside = k0 + r < depth && column0 + q + j < n;
          tb[r * 16 + q + j] =
              is_inside ? b[(k0 + r) * n + column0 + q + j] : __float2bfloat16(0.0f);
        }
      }
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
    wmma::load_matrix_sync(fa, ta, 16);
    wmma::load_matrix_sync(fb, tb, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    __syncwarp();
  }
  wmma::store_matrix_sync(tc, fc, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) {
    const int row = row0 + i / 16, column = column0 + i % 16;
    if (row < m && column < n) c[row * n + column] = __float2bfloat16(tc[i]);
  }
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), depth = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  product_kernel<<<dim3((n + 15) / 16, (m + 15) / 16), 32>>>(
      (const __nv_bfloat16*)a.data_ptr(), (const __nv_bfloat16*)b.data_ptr(),
      (__nv_bfloat16*)c.data_ptr(), m, depth, n);
  return c;
}
"""

ext = load_inline(
    name="tensor_cores",
    cpp_sources="torch::Tensor run(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.run(a.contiguous(), b.contiguous())
