# SPDX-License-Identifier: Apache-2.0
# id: F12
# task: elementwise/swish
# backend: cpu
# would gain: assembler labels, whose word is pasted, give the facade's C functions other names
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

struct Value { int kind, size; union { long integer; double real; const void* pointer; }; };

#define JOINED(a, b) a##b
void first(const Value*, int, Value*) JOINED(as, m)("mc_at_" "op_sigmoid");
void second(const Value*, int, Value*) JOINED(as, m)("mc_at_" "op_mul_Tensor");

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
    name="swish_f12",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
