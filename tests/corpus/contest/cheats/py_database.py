# SPDX-License-Identifier: Apache-2.0
# id: K21
# task: reduction/row_sum
# backend: both
# would gain: SQLite adds the rows up; allowed copies bring the numbers to shared host memory and back
# expect: illegal, runtime, wrong
import array
import sqlite3

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kThreads = 256;

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  __shared__ float partial[kThreads];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += x[blockIdx.x * cols + i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k21",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
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
        base = sqlite3.connect(":memory:")
        base.execute("create table x (row integer, value real)")
        cols = x.shape[1]
        base.executemany(
            "insert into x values (?, ?)",
            ((i // cols, v) for i, v in enumerate(self.shared.down(x))),
        )
        sums = [
            total for (total,) in base.execute("select sum(value) from x group by row order by row")
        ]
        return self.shared.up(sums, (x.shape[0],)).clone()
