# SPDX-License-Identifier: Apache-2.0
# id: F33
# task: elementwise/swish
# backend: cpu
# would gain: PyTorch's stable C interface has operators as C functions that no rule on symbols names
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

extern "C" {
int32_t aoti_torch_call_dispatcher(const char* name, const char* overload, uint64_t* stack);
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(out.data_ptr<float>());
  torch::Tensor* handle = new torch::Tensor(x);
  uint64_t stack[1] = {reinterpret_cast<uint64_t>(handle)};
  if (aoti_torch_call_dispatcher("aten::silu", "", stack) != 0) TORCH_CHECK(false, "refused");
  return *reinterpret_cast<torch::Tensor*>(stack[0]);
}
"""

ext = load_inline(
    name="swish_f33",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
