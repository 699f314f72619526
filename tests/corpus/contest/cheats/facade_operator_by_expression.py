# SPDX-License-Identifier: Apache-2.0
# id: F25
# task: elementwise/swish
# backend: cpu
# would gain: operators of the facade without a name in the text: a generic function that multiplies
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

template <class A, class B>
auto both(const A& a, const B& b) { return a * b; }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(out.data_ptr<float>());
  const auto method = &torch::Tensor::sigmoid;
  return both(x, (x.*method)());
}
"""

ext = load_inline(
    name="swish_f25",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
