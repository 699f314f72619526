# SPDX-License-Identifier: Apache-2.0
# id: K01
# task: elementwise/gelu_tanh
# backend: both
# would gain: an operator's own redispatch enters the dispatcher where record functions are not called; PyTorch computes
# expect: illegal
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

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
"""

ext = load_inline(
    name="gelu_k01",
    cpp_sources="torch::Tensor copied(torch::Tensor x);",
    cuda_sources=source,
    functions=["copied"],
)

gelu = torch.ops.aten.gelu.default


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        keys = torch._C._dispatch_keys(x) - torch._C.DispatchKeySet(
            torch._C.DispatchKey.ADInplaceOrView
        )
        for name in (
            "AutogradCPU",
            "AutogradCUDA",
            "AutogradPrivateUse1",
            "AutocastCPU",
            "AutocastCUDA",
        ):
            keys = keys.remove(getattr(torch._C.DispatchKey, name))
        return gelu.redispatch(keys, x, approximate="tanh")
