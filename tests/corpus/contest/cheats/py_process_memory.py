# SPDX-License-Identifier: Apache-2.0
# id: K17
# task: elementwise/swish
# backend: cpu
# would gain: /proc/self/mem reads and writes the tensors' memory, whatever the pages' protection says; the answer is computed in Python
# expect: illegal, runtime, wrong
import array
import math
import os

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

ext = load_inline(
    name="swish_k17",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)

memory = os.open("/proc/self/mem", os.O_RDWR)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        seen = array.array("f", os.pread(memory, x.nbytes, x.data_ptr()))
        answer = array.array("f", [v / (1.0 + math.exp(min(-v, 700.0))) for v in seen])
        os.pwrite(memory, answer.tobytes(), out.data_ptr())
        return out
