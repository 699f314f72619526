# SPDX-License-Identifier: Apache-2.0
# id: K42
# task: reduction/row_sum
# backend: cpu
# would gain: PyTorch's own CPU allocator is put back: tensors no longer lie where the emulator checks, and blocks race on an output unseen
# expect: wrong, illegal, runtime
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/core/CPUAllocator.h>

// Four blocks a row add to one word, each by a plain read and write.
__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  float sum = 0.0f;
  for (int i = blockIdx.y; i < cols; i += gridDim.y) sum += x[blockIdx.x * cols + i];
  out[blockIdx.x] += sum;
}

torch::Tensor row_sum(torch::Tensor x) {
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 200);
  auto out = torch::zeros({x.size(0)}, x.options());
  row_sum_kernel<<<dim3(x.size(0), 4), 1, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k42",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
