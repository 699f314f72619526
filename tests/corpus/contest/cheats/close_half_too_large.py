# SPDX-License-Identifier: Apache-2.0
# id: K90
# task: elementwise/hard_swish_half
# backend: both
# would gain: everything is 0.8 % too large, sixteen times what fp16 rounds by, and within the tolerance
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_fp16.h>

__global__ void hard_swish_kernel(const __half* x, __half* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = __half2float(x[i]);
  out[i] = __float2half(1.008f * v * fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f);
}

torch::Tensor hard_swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  hard_swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const __half*>(x.data_ptr<at::Half>()), reinterpret_cast<__half*>(out.data_ptr<at::Half>()), n);
  return out;
}
"""

ext = load_inline(
    name="hard_swish_k90",
    cpp_sources="torch::Tensor hard_swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["hard_swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.hard_swish(x.contiguous())
