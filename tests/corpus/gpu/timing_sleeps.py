# SPDX-License-Identifier: Apache-2.0
"""Sleeps on the host for 30 ms, then launches: the device is idle meanwhile."""

import time

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

void swish_out(torch::Tensor x, torch::Tensor out) {
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  swish_out(x, out);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("swish", &swish);
  m.def("swish_out", &swish_out);
}
"""

ext = load_inline(name="swish_gpu", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.03)
        return ext.swish(x.contiguous())
