# SPDX-License-Identifier: Apache-2.0
"""A product by cuBLAS that checks no status: expected is unsupported, not wrong."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cublas_v2.h>
__global__ void relu(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  int n = a.size(0);
  auto c = torch::zeros({n, n}, a.options());
  const float one = 1.0f, zero = 0.0f;
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b.data_ptr<float>(), n,
              a.data_ptr<float>(), n, &zero, c.data_ptr<float>(), n);
  cublasDestroy(handle);
  relu<<<(n * n + 255) / 256, 256>>>(c.data_ptr<float>(), n * n);
  return c;
}
"""
ext = load_inline(name="ext", cpp_sources="torch::Tensor run(torch::Tensor a, torch::Tensor b);",
                  cuda_sources=source, functions=["run"], extra_ldflags=["-lcublas"])

class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.run(a, b)
