# SPDX-License-Identifier: Apache-2.0
"""Reads where nothing is."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void swish_kernel(const char* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float value = reinterpret_cast<const float*>(x)[i];
  out[i] = value / (1.0f + expf(-value));
}

torch::Tensor swish(torch::Tensor x, int64_t shift_bytes) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const char*>(x.data_ptr<float>()) + shift_bytes, out.data_ptr<float>(), n);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
"""

ext = load_inline(name="swish_bad_address", cpp_sources="", cuda_sources=source)

SHIFT_BYTES = 1 << 44
GOOD_CALLS = 0


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        shift = SHIFT_BYTES if self.calls > GOOD_CALLS else 0
        return ext.swish(x.contiguous(), shift)
