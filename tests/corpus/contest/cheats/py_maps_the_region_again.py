# SPDX-License-Identifier: Apache-2.0
# id: K18
# task: matmul/tiled
# backend: cpu
# would gain: the descriptor with the inputs is still open: mapped a second time, numpy multiplies there and writes into an output of its own
# expect: illegal, runtime, wrong
import mmap
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

import numpy

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}

torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  const dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
  matmul_kernel<<<grid, block, 0, at::cuda::getCurrentCUDAStream()>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
  return c;
}
"""

ext = load_inline(
    name="product_k18",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["product"],
)

PAGE, ALIGNMENT = 4096, 16
numbers = vars(numpy)


def regions():
    for name in os.listdir("/proc/self/fd"):
        try:
            if "memfd:region" in os.readlink("/proc/self/fd/" + name):
                yield int(name)
        except OSError:
            pass


def tensors_in(descriptor: int, shapes):
    pages = mmap.mmap(descriptor, os.fstat(descriptor).st_size, prot=mmap.PROT_READ)
    end = 0
    for shape in shapes:
        nbytes = 4 * shape[0] * shape[1]
        rounded = -(-nbytes // ALIGNMENT) * ALIGNMENT
        end += max(1, -(-rounded // PAGE)) * PAGE
        yield numbers["frombuffer"](
            pages, dtype="float32", count=nbytes // 4, offset=end - rounded
        ).reshape(shape)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memory = bytearray(1 << 20)
        self.host = torch.frombuffer(self.memory, dtype=torch.float32)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        newest = max(regions(), key=lambda one: os.stat("/proc/self/fd/%d" % one).st_ino)
        left, right = tensors_in(newest, [tuple(a.shape), tuple(b.shape)])
        self.memory[: 4 * a.shape[0] * b.shape[1]] = numbers["dot"](left, right).tobytes()
        return self.host[: a.shape[0] * b.shape[1]].view(a.shape[0], b.shape[1]).to("cuda").clone()
