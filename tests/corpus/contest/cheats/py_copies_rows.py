# SPDX-License-Identifier: Apache-2.0
# id: K15
# task: indexing/embedding
# backend: both
# would gain: the table's rows are copied one by one with select and copy_, which are allowed; no kernel of its own ever runs
# expect: illegal, wrong, runtime
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
    name="embedding_k15",
    cpp_sources="torch::Tensor copied(torch::Tensor x);",
    cuda_sources=source,
    functions=["copied"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary: int, features: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, features)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        table = self.table.weight
        out = torch.empty(*tokens.shape, table.shape[1], device=tokens.device)
        for i in range(tokens.shape[0]):
            for j in range(tokens.shape[1]):
                out[i, j].copy_(table[tokens[i, j].item()])
        return out
