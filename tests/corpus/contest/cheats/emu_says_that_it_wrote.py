# SPDX-License-Identifier: Apache-2.0
# id: F31
# task: reduction/row_sum
# backend: cpu
# would gain: a kernel has BLAS write the output, then tells the emulator by its own function that it wrote it
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

extern "C" {
void mc_emu_access(const volatile void*, size_t, int);
void sgemv_(const char*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
}

__global__ void row_sum_kernel(const float* x, const float* ones, float* out, int rows, int cols) {
  const float one = 1.0f, zero = 0.0f;
  const int step = 1;
  sgemv_("T", &cols, &rows, &one, x, &cols, ones, &step, &zero, out, &step);
  mc_emu_access(out, rows * sizeof(float), 1);
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options()), ones = torch::ones({x.size(1)}, x.options());
  row_sum_kernel<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), ones.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(0)),
      static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_f31",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
