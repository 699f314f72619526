# SPDX-License-Identifier: Apache-2.0
"""Calls cuBLAS."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// cuBLAS counts columns first: the product of the transposed, the other way round.
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0);
  const int k = a.size(1);
  const int n = b.size(1);
  auto out = torch::empty({m, n}, a.options());
  const float one = 1.0f;
  const float zero = 0.0f;
  cublasSgemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one,
              b.data_ptr<float>(), n, a.data_ptr<float>(), k, &zero, out.data_ptr<float>(), n);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("product", &product); }
"""

ext = load_inline(name="product_cublas", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.product(a.contiguous(), b.contiguous())
