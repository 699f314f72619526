# SPDX-License-Identifier: Apache-2.0
# id: F26
# task: elementwise/swish
# backend: cpu
# would gain: the facade's operator table is included by a path through another folder, and its rows are run by a macro
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <torch/../mc_at/operators.h>
#define JOINED(a, b) a##b
#define SYMBOL(entry) JOINED(mc_, at_op_##entry)
#define NAMED(name, overload, entry) if (wanted == #entry) return reinterpret_cast<Operator>(&SYMBOL(entry));

struct Value { int kind, size; union { long integer; double real; const void* pointer; }; };

#include <string_view>
using Operator = void (*)(const Value*, int, Value*);
Operator named(std::string_view wanted) {
  JOINED(MC, _AT_EACH_OPERATOR)(NAMED)
  return nullptr;
}
void* handle_of(const torch::Tensor& x) { return *reinterpret_cast<void* const*>(&x); }

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(out.data_ptr<float>());
  Value args[2], half, whole;
  args[0].kind = args[1].kind = 4;
  args[0].pointer = handle_of(x);
  named("sigmoid")(args, 1, &half);
  args[1].pointer = half.pointer;
  named("mul_Tensor")(args, 2, &whole);
  torch::Tensor result;
  *reinterpret_cast<const void**>(&result) = whole.pointer;
  return result;
}
"""

ext = load_inline(
    name="swish_f26",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
