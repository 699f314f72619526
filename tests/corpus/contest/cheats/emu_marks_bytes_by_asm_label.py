# SPDX-License-Identifier: Apache-2.0
# id: F02
# task: elementwise/swish
# backend: cpu
# would gain: the same under other names with assembler labels, and from the facade
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

#define JOINED(a, b) a##b
void prepare(const void*) JOINED(as, m)("mc_emu_open");
unsigned char* marks(const void*) JOINED(as, m)("mc_emu_origins");

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  nothing_kernel<<<1, 1>>>(to);
  prepare(from);
  prepare(to);
  unsigned char* of = marks(to);
  for (int i = 0; i < n; ++i) to[i] = from[i] / (1.0f + std::exp(-from[i]));
  for (int i = 0; i < 4 * n; ++i) of[i] = 1;
  return out;
}
"""

ext = load_inline(
    name="swish_f02",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
