# SPDX-License-Identifier: Apache-2.0
# id: K102
# task: elementwise/swish
# backend: cpu
# would gain: a block of more threads than __launch_bounds__ of a template allows, whose error nobody asks for
# expect: wrong, runtime
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

template <int kWarps>
__global__ void __launch_bounds__(kWarps * 32, 2) swish_kernel(const float* x, float* y, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t n = x.numel();
  swish_kernel<4><<<(n + 159) / 160, 160, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(
    name="swish_k102",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
