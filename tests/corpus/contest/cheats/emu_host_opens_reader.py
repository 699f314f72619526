# SPDX-License-Identifier: Apache-2.0
# id: F07
# task: elementwise/swish
# backend: cpu
# would gain: device memory is opened by the emulator's function for reading alone; the answer goes to kernels as arguments, so that a launch wrote it
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

extern "C" void mc_emu_open(const void*);
struct Piece { float values[512]; };
__global__ void store_kernel(Piece piece, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = piece.values[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  mc_emu_open(from);
  for (int first = 0; first < n; first += 512) {
    const int count = n - first < 512 ? n - first : 512;
    Piece piece;
    for (int i = 0; i < count; ++i) piece.values[i] = from[first + i] / (1.0f + std::exp(-from[first + i]));
    store_kernel<<<1, 512>>>(piece, to + first, count);
  }
  return out;
}
"""

ext = load_inline(
    name="swish_f07",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
