# SPDX-License-Identifier: Apache-2.0
"""Allocates its output by cudaMalloc and wraps it."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  float* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, x.nbytes());
  TORCH_CHECK(error == cudaSuccess, cudaGetErrorString(error));
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(),
                                                                              memory, n);
  return torch::from_blob(memory, x.sizes(), [](void* it) { cudaFree(it); }, x.options());
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
"""

ext = load_inline(name="swish_from_blob", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
