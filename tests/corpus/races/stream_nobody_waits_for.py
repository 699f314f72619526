# SPDX-License-Identifier: Apache-2.0
"""Right where the device is idle: the caller reads what another stream may still be writing."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void swish_aside_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish_aside(torch::Tensor x) {
  static cudaStream_t aside = nullptr;
  if (aside == nullptr) cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking);
  auto y = torch::empty_like(x);
  const int n = x.numel();
  swish_aside_kernel<<<(n + 255) / 256, 256, 0, aside>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                                         n);
  return y;
}
"""

extension = load_inline(
    name="swish_aside_ext",
    cpp_sources="torch::Tensor swish_aside(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish_aside"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.swish_aside(x.contiguous())
