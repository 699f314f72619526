# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

kernel_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void weighted_add_kernel(const float* a, const float* b, const float* weight,
                                    float* out, int64_t size, int64_t columns) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size;
       i += step) {
    out[i] = a[i] + weight[i % columns] * b[i];
  }
}

torch::Tensor weighted_add(torch::Tensor a, torch::Tensor b, torch::Tensor weight) {
  auto out = torch::empty_like(a);
  const int64_t size = a.numel();
  const int threads = 256;
  const int blocks = static_cast<int>(std::min<int64_t>((size + threads - 1) / threads, 4096));
  if (size > 0) {
    weighted_add_kernel<<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), weight.data_ptr<float>(), out.data_ptr<float>(),
        size, weight.numel());
  }
  return out;
}
"""

extension = load_inline(
    name="weighted_add_ext",
    cpp_sources="torch::Tensor weighted_add(torch::Tensor a, torch::Tensor b, torch::Tensor w);",
    cuda_sources=kernel_source,
    functions=["weighted_add"],
)


class ModelNew(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return extension.weighted_add(a.contiguous(), b.contiguous(), self.weight)
