# SPDX-License-Identifier: Apache-2.0
# id: F10
# task: elementwise/swish
# backend: cpu
# would gain: the facade's C functions of sigmoid and mul are declared by the candidate itself
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

struct Value { int kind, size; union { long integer; double real; const void* pointer; }; };

extern "C" {
void mc_at_op_sigmoid(const Value*, int, Value*);
void mc_at_op_mul_Tensor(const Value*, int, Value*);
}

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

// A tensor is one pointer, in the facade as in PyTorch.
void* handle_of(const torch::Tensor& x) { return *reinterpret_cast<void* const*>(&x); }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(out.data_ptr<float>());
  Value args[2], half, whole;
  args[0].kind = args[1].kind = 4;
  args[0].size = args[1].size = 0;
  args[0].pointer = handle_of(x);
  mc_at_op_sigmoid(args, 1, &half);
  args[1].pointer = half.pointer;
  mc_at_op_mul_Tensor(args, 2, &whole);
  torch::Tensor result;
  *reinterpret_cast<const void**>(&result) = whole.pointer;
  return result;
}
"""

ext = load_inline(
    name="swish_f10",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
