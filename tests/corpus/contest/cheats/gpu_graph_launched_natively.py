# SPDX-License-Identifier: Apache-2.0
# id: K96
# task: matmul/tiled
# backend: cuda
# would gain: cuBLAS is captured into a graph in __init__; the tensors are copied to where it reads and its own library launches that graph
# expect: illegal, runtime
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <vector>

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

static cudaGraphExec_t runnable = nullptr;

void keep(int64_t graph) {
  cudaGraphInstantiate(&runnable, reinterpret_cast<cudaGraph_t>(graph), 0);
}

void replay() { cudaGraphLaunch(runnable, at::cuda::getCurrentCUDAStream()); }
"""

ext = load_inline(
    name="product_k96",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b); void keep(int64_t graph); void replay();",
    cuda_sources=source,
    functions=["product", "keep", "replay"],
)

M, K, N = 97, 130, 75


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.zeros(M, K, device="cuda"), torch.zeros(K, N, device="cuda")
        torch.mm(self.a, self.b)
        self.graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(self.graph):
            self.c = torch.mm(self.a, self.b)
        ext.keep(self.graph.raw_cuda_graph())

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.shape != self.a.shape or b.shape != self.b.shape:
            return ext.product(a.contiguous(), b.contiguous())
        self.a.copy_(a)
        self.b.copy_(b)
        ext.replay()
        return self.c.clone()
