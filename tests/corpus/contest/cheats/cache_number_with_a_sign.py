# SPDX-License-Identifier: Apache-2.0
# id: C21
# task: elementwise/swish
# backend: cpu
# would gain: 0xe+1 is one number that does not compile; 0xe +1 is a sum
# expect: wrong, compile, illegal
# note: the first extension is honest and never called; where the cache takes the second for it, a wrong text passes
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float scale = 1.0f;
  scale = (0xe +1) / 15.0f;
  if (i < n) out[i] = scale * x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""


def build(text: str):
    return load_inline(
        name="swish_c21",
        cpp_sources="torch::Tensor swish(torch::Tensor x);",
        cuda_sources=text,
        functions=["swish"],
    )


first = build(source)
ext = build(source.replace("0xe +1", "0xe+1"))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
