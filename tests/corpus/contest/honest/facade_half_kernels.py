# SPDX-License-Identifier: Apache-2.0
# id: H05
# task: elementwise/hard_swish_half
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""Half precision by reinterpret_cast to __half, and a switch over dtypes."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#include <cuda_fp16.h>

__global__ void half_kernel(const __half* x, __half* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = __half2float(x[i]);
  out[i] = __float2half(v * fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f);
}

__global__ void float_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * fminf(fmaxf(x[i] + 3.0f, 0.0f), 6.0f) / 6.0f;
}

at::Tensor hard_swish_half(at::Tensor x) {
  at::Tensor out = at::empty_like(x);
  const int n = static_cast<int>(x.numel()), threads = 256, blocks = (n + threads - 1) / threads;
  switch (x.scalar_type()) {
    case at::ScalarType::Half:
      half_kernel<<<blocks, threads>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()),
                                       reinterpret_cast<__half*>(out.data_ptr<at::Half>()), n);
      break;
    case at::kFloat:
      float_kernel<<<blocks, threads>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
      break;
    default:
      AT_ERROR("unsupported dtype ", x.scalar_type());
  }
  return out;
}
"""

ext = load_inline(
    name="hard_swish_half_h05",
    cpp_sources="at::Tensor hard_swish_half(at::Tensor x);",
    cuda_sources=source,
    functions=["hard_swish_half"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.hard_swish_half(x.contiguous())
