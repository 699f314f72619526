# SPDX-License-Identifier: Apache-2.0
# id: K08
# task: softmax/softmax_rows
# backend: both
# would gain: a dispatch mode is entered around an allowed clone; in its hook, inside of that clone, PyTorch computes
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
    name="softmax_k08",
    cpp_sources="torch::Tensor copied(torch::Tensor x);",
    cuda_sources=source,
    functions=["copied"],
)

from torch.utils import _python_dispatch as modes


class Instead(modes.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return torch.softmax(args[0], dim=1)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with Instead():
            return x.clone()
