# SPDX-License-Identifier: Apache-2.0
"""Looks at its own intermediate result on the host before it goes on."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

// The bits of positive floats are ordered as the floats are.
__global__ void largest_kernel(const float* x, unsigned* largest, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMax(largest, __float_as_uint(fabsf(x[i])));
}

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

// Where all elements are zero, so is the answer.
torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  auto found = torch::empty({1}, x.options().dtype(torch::kInt32));
  auto* largest = reinterpret_cast<unsigned*>(found.data_ptr<int>());
  const int n = x.numel();
  const int num_blocks = (n + 255) / 256;
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  cudaMemsetAsync(largest, 0, sizeof(unsigned), stream);
  largest_kernel<<<num_blocks, 256, 0, stream>>>(x.data_ptr<float>(), largest, n);
  unsigned bits = 0;
  cudaMemcpyAsync(&bits, largest, sizeof bits, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  if (bits == 0) {
    cudaMemsetAsync(out.data_ptr<float>(), 0, out.nbytes(), stream);
  } else {
    swish_kernel<<<num_blocks, 256, 0, stream>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  }
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
"""

ext = load_inline(name="swish_reads_back", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
