# SPDX-License-Identifier: Apache-2.0
# The sources are fields of a dataclass, and a method puts them together.
from dataclasses import dataclass, field
from typing import List

import torch
import torch.nn as nn
import torch_musa
import torch_musa.utils.musa_extension as musa_ext


@dataclass(frozen=True)
class KernelSource:
    name: str
    prologue: str
    body: str
    functions: List[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join([self.prologue, self.body])

    def build(self, declaration: str):
        return musa_ext.load_inline(
            self.name,
            [declaration],
            [self.text],
            functions=list(self.functions),
            extra_musa_cflags=["--offload-arch=mp_31"],
            verbose=False,
        )


PROLOGUE = """#include <torch/extension.h>
#include "torch_musa/csrc/core/MUSAStream.h"
#include "torch_musa/csrc/core/MUSAGuard.h"
"""

ROW_SUM = KernelSource(
    "musa_row_sum",
    PROLOGUE,
    r"""
__global__ void row_sum(const float* __restrict__ x, float* __restrict__ out, int cols) {
  extern __shared__ float cache[];
  float sum = 0.f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += x[(size_t)blockIdx.x * cols + c];
  cache[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step >>= 1) {
    if (threadIdx.x < step) cache[threadIdx.x] += cache[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = cache[0];
}

at::Tensor musa_row_sum(at::Tensor x) {
  const c10::musa::MUSAGuard guard(x.device());
  auto out = at::empty({x.size(0)}, x.options());
  musaStream_t stream = c10::musa::getCurrentMUSAStream();
  if (x.size(0) > 0)
    row_sum<<<x.size(0), 256, 256 * sizeof(float), stream>>>(x.data_ptr<float>(),
                                                             out.data_ptr<float>(), x.size(1));
  return out;
}
""",
    ["musa_row_sum"],
)
module = ROW_SUM.build("at::Tensor musa_row_sum(at::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return module.musa_row_sum(x.contiguous())
