# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <ATen/cuda/CUDAContext.h>

template <typename T>
__global__ void greater_kernel(const T* a, const T* b, bool* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] > b[i];
  }
}

at::Tensor greater_than(at::Tensor a, at::Tensor b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "a and b must have one shape, not ", a.sizes(), " and ",
              b.sizes());
  at::Tensor out = torch::empty(a.sizes(), a.options().dtype(torch::kBool));
  const int n = a.numel();
  const int block_size = 256;
  const int num_blocks = (n + block_size - 1) / block_size;
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "greater_than", ([&] {
    greater_kernel<scalar_t><<<num_blocks, block_size, 0, at::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), out.data_ptr<bool>(), n);
  }));
  TORCH_CHECK(cudaGetLastError() == cudaSuccess, "the launch failed");
  return out;
}
"""

module = load_inline(
    name="greater_than_ext",
    cpp_sources="at::Tensor greater_than(at::Tensor a, at::Tensor b);",
    cuda_sources=cuda_source,
    functions="greater_than",
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return module.greater_than(a.contiguous(), b.contiguous())
