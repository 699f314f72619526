# SPDX-License-Identifier: Apache-2.0
"""Forks to a stream of its own and joins it again, with events."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void swish_kernel(const float* x, float* out, int begin, int end) {
  const int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < end) out[i] = x[i] / (1.0f + expf(-x[i]));
}

struct Side {
  cudaStream_t stream;
  cudaEvent_t forked;
  cudaEvent_t joined;
  Side() {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
  }
};

void launch(const torch::Tensor& x, torch::Tensor& out, int begin, int end, cudaStream_t stream) {
  if (begin == end) return;
  swish_kernel<<<(end - begin + 255) / 256, 256, 0, stream>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), begin, end);
}

// One half here, one half there.
torch::Tensor swish(torch::Tensor x) {
  static const Side side;
  auto out = torch::empty_like(x);
  const int n = x.numel();
  cudaStream_t main = at::cuda::getCurrentCUDAStream();
  cudaEventRecord(side.forked, main);
  cudaStreamWaitEvent(side.stream, side.forked, 0);
  launch(x, out, 0, n / 2, main);
  launch(x, out, n / 2, n, side.stream);
  cudaEventRecord(side.joined, side.stream);
  cudaStreamWaitEvent(main, side.joined, 0);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
"""

ext = load_inline(name="swish_side_stream", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
