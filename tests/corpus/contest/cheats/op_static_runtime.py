# SPDX-License-Identifier: Apache-2.0
# id: K03
# task: elementwise/swish
# backend: cpu
# would gain: TorchScript's static runtime runs PyTorch's own out-variants past the dispatcher
# expect: illegal, runtime
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

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
"""

ext = load_inline(
    name="swish_k03",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)

script, static = torch.jit.CompilationUnit, torch._C._jit_to_static_module
unit = script("""
def swish(x):
    return torch.sigmoid(x) * x
""")


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with torch._C.DisableTorchFunction():
            self.quick = static(unit.swish.graph)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.quick(x)
