# SPDX-License-Identifier: Apache-2.0
"""Raises what the trusted say of a task that does not fit."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

from harness.worker.wire import Refusal

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


ext = load_inline(
    name="swish_says_unsupported",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)

error = Refusal("unsupported", "this machine lacks what the candidate wants")
vars(error)["mc_stage"] = "reference"
raise error


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x)
