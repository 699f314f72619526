# SPDX-License-Identifier: Apache-2.0
# id: H32
# task: elementwise/hard_swish_half
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""at::acc_type and at::opmath_type of half."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#include <ATen/AccumulateType.h>
#include <ATen/OpMathType.h>

template <typename scalar_t>
__global__ void C10_LAUNCH_BOUNDS_1(256) hard_swish_kernel(const scalar_t* x, scalar_t* out, int n) {
  using acc_t = at::acc_type<scalar_t, true>;
  using opmath_t = at::opmath_type<scalar_t>;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const acc_t v = static_cast<acc_t>(x[i]);
  const opmath_t zero(0), six(6);
  out[i] = v * std::min(std::max(v + opmath_t(3), zero), six) / six;
}

torch::Tensor hard_swish_half(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "hard_swish", [&] {
    hard_swish_kernel<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n);
  });
  return out;
}
"""

ext = load_inline(
    name="hard_swish_half_h32",
    cpp_sources="torch::Tensor hard_swish_half(torch::Tensor x);",
    cuda_sources=source,
    functions=["hard_swish_half"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.hard_swish_half(x.contiguous())
