# SPDX-License-Identifier: Apache-2.0
# id: F14
# task: elementwise/swish
# backend: cpu
# would gain: the symbols get a version behind an @ by top-level assembly
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

struct Value { int kind, size; union { long integer; double real; const void* pointer; }; };

#define JOINED(a, b) a##b
extern "C" {
void first(const Value*, int, Value*);
void second(const Value*, int, Value*);
}
JOINED(as, m)(".symver first, mc_at_op_sigmoid@");
JOINED(as, m)(".symver second, mc_at_op_mul_Tensor@");

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
  first(args, 1, &half);
  args[1].pointer = half.pointer;
  second(args, 2, &whole);
  torch::Tensor result;
  *reinterpret_cast<const void**>(&result) = whole.pointer;
  return result;
}
"""

ext = load_inline(
    name="swish_f14",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
