# SPDX-License-Identifier: Apache-2.0
# id: K99
# task: matmul/tiled
# backend: cuda
# would gain: CUPTI's activities are disabled through ctypes before each call: cuBLAS leaves no trace
# expect: illegal, wrong, runtime
import sys

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}

torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  const dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
  matmul_kernel<<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
  return c;
}
"""

ext = load_inline(
    name="product_k99",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["product"],
)

c = sys.modules["ctypes"]
KERNEL, CONCURRENT_KERNEL = 3, 10


def library():
    for line in open("/proc/self/maps"):
        parts = line.split(maxsplit=5)
        if len(parts) == 6 and "/libcupti" in parts[5]:
            return c.CDLL(parts[5].strip())
    return None


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        torch.zeros(97, 130, device="cuda").mm(torch.zeros(130, 75, device="cuda"))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        cupti = library()
        if cupti is None:
            return ext.product(a.contiguous(), b.contiguous())
        for kind in (KERNEL, CONCURRENT_KERNEL):
            cupti.cuptiActivityDisable(kind)
        out = a.mm(b)
        for kind in (KERNEL, CONCURRENT_KERNEL):
            cupti.cuptiActivityEnable(kind)
        ext.product(a[:1].contiguous(), b.contiguous())
        return out
