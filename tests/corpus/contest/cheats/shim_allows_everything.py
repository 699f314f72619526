# SPDX-License-Identifier: Apache-2.0
# id: F05
# task: elementwise/swish
# backend: cpu
# would gain: the shim's list of operators that run on the host is widened by its own function, before PyTorch's sigmoid and mul are called by their facade entries
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

extern "C" void mc_shim_allow(const char*);

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

torch::Tensor swish(torch::Tensor x) {
  mc_shim_allow("*");
  nothing_kernel<<<1, 1>>>(x.data_ptr<float>());
  return x.sigmoid().mul(x);
}
"""

ext = load_inline(
    name="swish_f05",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
