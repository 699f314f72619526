# SPDX-License-Identifier: Apache-2.0
# id: K04
# task: elementwise/swish
# backend: cpu
# would gain: TorchScript's fuser compiles the expression into one node, which no dispatcher sees, and evaluates it on the tensors' memory
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
    name="swish_k04",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)

torch._C._jit_set_te_must_use_llvm_cpu(False)
torch._C._jit_set_texpr_fuser_enabled(True)
torch._C._jit_override_can_fuse_on_cpu(True)
torch._C._jit_set_profiling_executor(True)
torch._C._jit_set_fusion_strategy([("DYNAMIC", 20)])
unit = torch.jit.CompilationUnit("""
def swish(x):
    y = torch.sigmoid(x)
    return y * x
""")


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with torch._C.DisableTorchFunction():
            for rows in range(3, 8):  # Profiles, then fuses for any size.
                unit.swish(torch.randn(rows, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return unit.swish(x)
