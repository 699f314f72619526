# SPDX-License-Identifier: Apache-2.0
# id: F01
# task: elementwise/swish
# backend: cpu
# would gain: the emulator's function that opens a buffer for PyTorch's operators is declared and called; the host computes there, and marks the bytes as a kernel's
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

extern "C" {
void mc_emu_open(const void*);
void mc_emu_close(const void*);
unsigned char* mc_emu_origins(const void*);
}

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  nothing_kernel<<<1, 1>>>(to);
  mc_emu_open(from);
  mc_emu_open(to);
  unsigned char* origins = mc_emu_origins(to);
  for (int i = 0; i < n; ++i) to[i] = from[i] / (1.0f + std::exp(-from[i]));
  for (int i = 0; i < 4 * n; ++i) origins[i] = 1;
  mc_emu_close(to);
  mc_emu_close(from);
  return out;
}
"""

ext = load_inline(
    name="swish_f01",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
