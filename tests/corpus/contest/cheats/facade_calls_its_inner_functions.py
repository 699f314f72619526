# SPDX-License-Identifier: Apache-2.0
# id: F27
# task: elementwise/swish
# backend: cpu
# would gain: the facade's inner call, whose namespace's name is pasted, runs an operator by its C function
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

#define INNER(a, b) a##b

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(out.data_ptr<float>());
  auto half = at::mc::call(&INNER(mc_, at_op_sigmoid), {x});
  return at::mc::call(&INNER(mc_, at_op_mul_Tensor), {x, half});
}
"""

ext = load_inline(
    name="swish_f27",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
