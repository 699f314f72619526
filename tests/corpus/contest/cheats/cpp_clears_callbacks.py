# SPDX-License-Identifier: Apache-2.0
# id: K30
# task: softmax/softmax_rows
# backend: both
# would gain: the library clears all record-function callbacks of the process; PyTorch computes by plain operators
# expect: illegal
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/record_function.h>

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

void clear() { at::clearCallbacks(); }
"""

ext = load_inline(
    name="softmax_k30",
    cpp_sources="torch::Tensor copied(torch::Tensor x); void clear();",
    cuda_sources=source,
    functions=["copied", "clear"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ext.clear()
        return torch.softmax(x, dim=1)
