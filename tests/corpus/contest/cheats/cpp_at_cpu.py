# SPDX-License-Identifier: Apache-2.0
# id: K31
# task: elementwise/gelu_tanh
# backend: cpu
# would gain: at::cpu:: calls PyTorch's kernel past its dispatcher: no recorded operator, no name that the link rule knows
# expect: illegal, runtime, wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/gelu_cpu_dispatch.h>

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

torch::Tensor gelu(torch::Tensor x) { return at::cpu::gelu(x, "tanh"); }
"""

ext = load_inline(
    name="gelu_k31",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources=source,
    functions=["gelu"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.gelu(x.contiguous())
