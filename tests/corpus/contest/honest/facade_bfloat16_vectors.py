# SPDX-License-Identifier: Apache-2.0
# id: H17
# task: matmul/bfloat16
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""bfloat16 by its CUDA type and by at::BFloat16, with templates over both."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#include <cuda_bf16.h>

// PyTorch's flags take the conversions of CUDA's type away; its functions are there.
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__device__ float to_float(T x) { return static_cast<float>(x); }
__device__ void put(__nv_bfloat16& to, float x) { to = __float2bfloat16(x); }
template <typename T>
__device__ void put(T& to, float x) { to = static_cast<T>(x); }

template <typename T>
__global__ void matmul_kernel(const T* a, const T* b, T* out, int m, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += to_float(a[row * k + i]) * to_float(b[i * n + col]);
  put(out[row * n + col], sum);
}

torch::Tensor matmul_of(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), a.dtype().name(), " and ", b.dtype());
  auto out = torch::empty({a.size(0), b.size(1)}, a.options());
  const dim3 threads(16, 16), blocks((b.size(1) + 15) / 16, (a.size(0) + 15) / 16);
  if (a.dtype() == torch::kBFloat16) {
    matmul_kernel<__nv_bfloat16><<<blocks, threads>>>(
        static_cast<const __nv_bfloat16*>(a.data_ptr()), static_cast<const __nv_bfloat16*>(b.data_ptr()),
        static_cast<__nv_bfloat16*>(out.data_ptr()), a.size(0), b.size(1), a.size(1));
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND(at::kHalf, a.scalar_type(), "matmul", [&] {
      matmul_kernel<scalar_t><<<blocks, threads>>>(a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(),
                                                   out.data_ptr<scalar_t>(), a.size(0), b.size(1), a.size(1));
    });
  }
  return out;
}
"""

ext = load_inline(
    name="matmul_of_h17",
    cpp_sources="torch::Tensor matmul_of(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["matmul_of"],
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.matmul_of(a.contiguous(), b.contiguous())
