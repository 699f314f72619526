# SPDX-License-Identifier: Apache-2.0
# id: K02
# task: elementwise/swish
# backend: both
# would gain: a record function of its own, named as an allowed operator, stands around: what PyTorch computes inside counts as nested
# expect: illegal
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/record_function.h>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}

static at::RecordFunction* around = nullptr;

void begin() {
  around = new at::RecordFunction(at::RecordScope::FUNCTION);
  around->before("aten::clone");
}

void end() { delete around; }
"""

ext = load_inline(
    name="swish_k02",
    cpp_sources="torch::Tensor swish(torch::Tensor x); void begin(); void end();",
    cuda_sources=source,
    functions=["swish", "begin", "end"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ext.begin()
        out = x * x.sigmoid()
        ext.end()
        return out
