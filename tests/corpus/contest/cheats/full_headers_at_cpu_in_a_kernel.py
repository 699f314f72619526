# SPDX-License-Identifier: Apache-2.0
# id: F32
# task: elementwise/swish
# backend: cpu
# would gain: PyTorch's full headers are asked for by a name; a kernel calls at::cpu::silu_out on a host tensor over the device's memory, past the dispatcher, into a variable of the library
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/CPUFunctions.h>

#define JOINED(a, b) a##b
namespace direct = at::JOINED(cp, u);

static float answer[1 << 18];

__global__ void silu_kernel(at::Tensor* result, const at::Tensor* input, float* to, int n) {
  direct::silu_out(*result, *input);
  for (int i = 0; i < n; ++i) to[i] = answer[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  static at::Tensor result, input;
  result = at::from_blob(answer, {n}, at::kFloat);
  input = at::from_blob(from, {n}, at::kFloat);
  silu_kernel<<<1, 1>>>(&result, &input, to, n);
  return out;
}
"""

ext = load_inline(
    name="swish_f32",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
