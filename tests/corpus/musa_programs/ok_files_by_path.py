# SPDX-License-Identifier: Apache-2.0
# A kernel, its header and its binding are written to files, which `load` compiles.
import tempfile
from pathlib import Path

import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load

FOLDER = Path(tempfile.mkdtemp())

(FOLDER / "musa_helpers.muh").write_text(
    """#pragma once
#include <musa_runtime.h>
#define MUSA_CHECK(call)                                     \\
  do {                                                       \\
    musaError_t musa_status = (call);                        \\
    TORCH_CHECK(musa_status == musaSuccess, "MUSA failed");  \\
  } while (0)
__device__ inline float max_of(float a, float b) { return a > b ? a : b; }
"""
)
(FOLDER / "softmax_kernel.mu").write_text(
    r"""
#include <torch/extension.h>
#include "torch_musa/csrc/aten/musa/MUSAContext.h"
#include "musa_helpers.muh"

__global__ void softmax(const float* x, float* y, int n) {
  __shared__ float cache[128];
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  float best = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 128) best = max_of(best, x[i]);
  cache[threadIdx.x] = best;
  __syncthreads();
  for (int i = 0; i < 128; ++i) best = max_of(best, cache[i]);
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 128) sum += expf(x[i] - best);
  cache[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < 128; ++i) sum += cache[i];
  for (int i = threadIdx.x; i < n; i += 128) y[i] = expf(x[i] - best) / sum;
}

at::Tensor musa_softmax(at::Tensor x) {
  auto y = at::empty_like(x);
  if (x.size(0) == 0) return y;
  softmax<<<x.size(0), 128, 0, at::musa::getCurrentMUSAStream()>>>(x.data_ptr<float>(),
                                                                  y.data_ptr<float>(), x.size(1));
  MUSA_CHECK(musaGetLastError());
  return y;
}
"""
)
with open(FOLDER / "binding.cpp", "w") as file:
    file.write("#include <torch/extension.h>\n")
    file.write("at::Tensor musa_softmax(at::Tensor x);\n")
    file.write("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"softmax\", &musa_softmax); }\n")

ext = load(
    name="softmax_files",
    sources=[str(FOLDER / "binding.cpp"), str(FOLDER / "softmax_kernel.mu")],
    extra_include_paths=[str(FOLDER)],
    extra_musa_cflags=["--offload-arch=mp_31"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.softmax(x.contiguous())
