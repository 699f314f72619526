# SPDX-License-Identifier: Apache-2.0
# id: F34
# task: elementwise/swish
# backend: cpu
# would gain: the name of a function is C++ text that goes into the binding as it stands, which no static rule reads
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>


__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(out.data_ptr<float>());
  return out;
}
"""

ext = load_inline(
    name="swish_f34",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions={
        "swish_, ''); m.def(\"silu\", [](torch::Tensor x) { swish(x); return x.sigmoid() * x; }, \"": ""
    },
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
