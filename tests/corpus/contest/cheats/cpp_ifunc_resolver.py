# SPDX-License-Identifier: Apache-2.0
# id: K41
# task: elementwise/mish
# backend: cpu
# would gain: an ifunc's resolver, which the loader runs before any constructor, turns record functions off for the thread; PyTorch computes
# expect: illegal
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/record_function.h>

__global__ void copy_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}

torch::Tensor copied(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  copy_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}

extern "C" {
static int64_t plain() { return 1; }
static int64_t (*resolve())() {
  at::enableRecordFunction(false);
  return plain;
}
int64_t picked() __attribute__((ifunc("resolve")));
}

int64_t chosen() { return picked(); }
"""

ext = load_inline(
    name="mish_k41",
    cpp_sources="torch::Tensor copied(torch::Tensor x); int64_t chosen();",
    cuda_sources=source,
    functions=["copied", "chosen"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mish(x)
