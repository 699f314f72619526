# SPDX-License-Identifier: Apache-2.0
# id: K97
# task: matmul/tiled
# backend: cuda
# would gain: cuBLAS's handle that PyTorch holds, and its function by ctypes from the library's path in /proc/self/maps
# expect: illegal, runtime
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
    name="product_k97",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["product"],
)

c = sys.modules["ctypes"]


def library():
    for line in open("/proc/self/maps"):
        path = line.split(maxsplit=5)[5].strip() if len(line.split(maxsplit=5)) == 6 else ""
        if "/libcublas.so" in path:
            return c.CDLL(path)
    return None


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.zeros(97, 130, device="cuda").mm(torch.zeros(130, 75, device="cuda"))
        self.handle = torch.cuda.current_blas_handle()
        self.sgemm = library().cublasSgemm_v2

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty(m, n, device=a.device)
        one, zero = c.c_float(1.0), c.c_float(0.0)
        address = lambda t: c.c_void_p(t.data_ptr())
        self.sgemm(
            c.c_void_p(self.handle),
            0,
            0,
            n,
            m,
            k,
            c.byref(one),
            address(b),
            n,
            address(a),
            k,
            c.byref(zero),
            address(out),
            n,
        )
        return out
