# SPDX-License-Identifier: Apache-2.0
"""Adds to an output that is cleared first."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void add_kernel(const float* x, float* out, int cols) {
  const float* row = x + static_cast<int64_t>(blockIdx.x) * cols;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += row[i];
  atomicAdd(out + blockIdx.x, sum);
}

void clear_it(torch::Tensor out) {
  cudaMemsetAsync(out.data_ptr<float>(), 0, out.nbytes(), at::cuda::getCurrentCUDAStream());
}

void add_rows(torch::Tensor x, torch::Tensor out) {
  add_kernel<<<x.size(0), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("clear_it", &clear_it);
  m.def("add_rows", &add_rows);
}
"""

ext = load_inline(name="row_atomics", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape[0], device=x.device)
        ext.add_rows(x.contiguous(), out)
        return out
