# SPDX-License-Identifier: Apache-2.0
"""Writes the recorder's answer itself, with headers that get in each other's way."""

import json
import os
import struct

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
  auto out = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

headers = ["main.cpp", "cuda.cu", "a", "a/b", ".", "b/", "torch/extension.h"]
extension = {
    "name": "swish_forged_recording",
    "key": "ab" * 32,
    "cpp_sources": ["torch::Tensor swish(torch::Tensor x);"],
    "cuda_sources": [source],
    "functions": {"swish": "swish"},
    "files": [{"name": name, "text": "#error read\n"} for name in headers],
}
body = json.dumps({"ok": True, "extensions": [extension]}).encode()
os.write(3, struct.pack("<I", len(body)) + body)

ext = load_inline(
    name="swish_forged_recording",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x)
