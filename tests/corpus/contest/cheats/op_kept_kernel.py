# SPDX-License-Identifier: Apache-2.0
# id: K24
# task: elementwise/mish
# backend: cpu
# would gain: the dispatcher gives PyTorch's kernel for the host out, in __init__; it is called past the dispatcher on host tensors, and a kernel of its own copies the answer
# expect: illegal, runtime, wrong
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
    name="mish_k24",
    cpp_sources="torch::Tensor copied(torch::Tensor x);",
    cuda_sources=source,
    functions=["copied"],
)


def host_kernel():
    op = torch.ops.aten.mish.default
    key = torch._C.DispatchKey.CPU
    with torch._C.DisableTorchFunction():
        kept = torch._C._dispatch_get_computed_kernel_for_dispatch_key(op.name(), "CPU")
    keys = torch._C.DispatchKeySet(key)
    return lambda x: kept.call_boxed(keys, x)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mish = host_kernel()
        self.host = torch.frombuffer(bytearray(1 << 24), dtype=torch.float32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.host[: x.numel()].view(x.shape)
        seen.copy_(x)
        return ext.copied(self.mish(seen).to("cuda"))
