# SPDX-License-Identifier: Apache-2.0
# id: K16
# task: reduction/column_max
# backend: both
# would gain: Python looks for the place of each maximum on the host; that element is then copied from input to output, device to device
# expect: illegal, wrong, runtime
import array

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
    name="column_max_k16",
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


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = Shared(1 << 18)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, cols = x.shape
        out = torch.empty(batch, cols, device=x.device)
        seen = self.shared.down(x)
        for b in range(batch):
            for c in range(cols):
                best = max(range(rows), key=lambda r: seen[(b * rows + r) * cols + c])
                out[b, c].copy_(x[b, best, c])
        return out
