# SPDX-License-Identifier: Apache-2.0
# id: K14
# task: elementwise/gelu_tanh
# backend: both
# would gain: Python's math computes the answer in memory that it shares with a host tensor; a kernel of its own then copies that to the output, so that a launch wrote it
# expect: illegal, wrong, runtime
# note: the hardest of its kind: what is read back, computed in Python and sent again is written by a launch
import array
import math

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void copy_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}

torch::Tensor copied(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  copy_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="gelu_k14",
    cpp_sources="torch::Tensor copied(torch::Tensor x);",
    cuda_sources=source,
    functions=["copied"],
)


class Shared:
    # A host tensor over memory that Python reads and writes.
    def __init__(self, floats: int) -> None:
        self.memory = bytearray(4 * floats)
        self.tensor = torch.frombuffer(self.memory, dtype=torch.float32)

    def down(self, x: torch.Tensor) -> array.array:
        self.tensor[: x.numel()].view(x.shape).copy_(x)
        return array.array("f", bytes(self.memory[: 4 * x.numel()]))

    def up(self, values, shape) -> torch.Tensor:
        data = array.array("f", values).tobytes()
        self.memory[: len(data)] = data
        return self.tensor[: len(data) // 4].view(shape).to("cuda")


def gelu(v: float) -> float:
    return 0.5 * v * (1.0 + math.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = Shared(1 << 18)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        answer = [gelu(v) for v in self.shared.down(x)]
        return ext.copied(self.shared.up(answer, x.shape))
