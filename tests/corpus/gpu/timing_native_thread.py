# SPDX-License-Identifier: Apache-2.0
"""A C++ thread launches the kernel after forward has returned."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <chrono>
#include <thread>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

// Launches when forward has long returned; the next call may wait for it.
torch::Tensor swish(torch::Tensor x, bool joins) {
  static auto& previous = *new std::thread;
  if (previous.joinable()) previous.join();
  auto out = torch::empty_like(x);
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  std::thread later([x, out, stream] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int n = x.numel();
    swish_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), out.data_ptr<float>(),
                                                      n);
  });
  if (joins) {
    previous = std::move(later);
  } else {
    later.detach();
  }
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
"""

ext = load_inline(name="swish_native_thread", cpp_sources="", cuda_sources=source)

JOINS_AT_THE_NEXT_CALL = False


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous(), JOINS_AT_THE_NEXT_CALL)
