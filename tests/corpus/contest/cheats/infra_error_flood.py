# SPDX-License-Identifier: Apache-2.0
# id: K71
# task: elementwise/swish
# backend: cpu
# would gain: so many errors that the compiler's report is cut in its middle and says nothing any more
# expect: compile
# hole_outcomes: unsupported, infra
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ERRORS = '#define E "' + 3000 * "e" + '"\n' + 2500 * "static_assert(false, E);\n"
source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

@ERRORS@

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (7.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_k71",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source.replace("@ERRORS@", ERRORS),
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
