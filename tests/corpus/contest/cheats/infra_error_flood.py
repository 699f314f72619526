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

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

#define E1(n) int a##n = missing_name_##n;
#define E10(p) E1(p##0) E1(p##1) E1(p##2) E1(p##3) E1(p##4) E1(p##5) E1(p##6) E1(p##7) E1(p##8) E1(p##9)
#define E100(p) E10(p##0) E10(p##1) E10(p##2) E10(p##3) E10(p##4) E10(p##5) E10(p##6) E10(p##7) E10(p##8) E10(p##9)
#define E1000(p) E100(p##0) E100(p##1) E100(p##2) E100(p##3) E100(p##4) E100(p##5) E100(p##6) E100(p##7) E100(p##8) E100(p##9)
E1000(1) E1000(2) E1000(3) E1000(4) E1000(5) E1000(6)

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
    cuda_sources=source,
    functions=["swish"],
)

class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
