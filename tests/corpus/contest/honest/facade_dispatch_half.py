# SPDX-License-Identifier: Apache-2.0
# id: H06
# task: elementwise/hard_swish_half
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""Dispatch over half types with an accumulator in float."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

template <typename scalar_t>
__global__ void hard_swish_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ out,
                                  const int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    const float v = static_cast<float>(x[i]);
    const float gate = v <= -3.f ? 0.f : (v >= 3.f ? 1.f : (v + 3.f) / 6.f);
    out[i] = static_cast<scalar_t>(v * gate);
  }
}

torch::Tensor hard_swish_half(torch::Tensor x) {
  auto in = x.is_contiguous() ? x : x.contiguous();
  auto out = torch::empty(in.sizes(), in.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, in.scalar_type(),
                                  "hard_swish", [&]() {
    const int threads = 512;
    hard_swish_kernel<scalar_t><<<(in.numel() + threads - 1) / threads, threads, 0,
                                  at::cuda::getCurrentCUDAStream(in.device().index())>>>(
        in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), in.numel());
  });
  return out;
}
"""

ext = load_inline(
    name="hard_swish_half_h06",
    cpp_sources="torch::Tensor hard_swish_half(torch::Tensor x);",
    cuda_sources=source,
    functions=["hard_swish_half"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.hard_swish_half(x)
