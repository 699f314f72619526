# SPDX-License-Identifier: Apache-2.0
"""A function of the host holds the work back, on a stream that nobody waits for."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <chrono>
#include <thread>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

void wait(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

// The driver's own function, under a name that no linker sees.
auto launch_host_func() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuLaunchHostFunc", &found, 12000, cudaEnableDefault, &result);
  return reinterpret_cast<CUresult (*)(CUstream, void (*)(void*), void*)>(found);
}

torch::Tensor swish(torch::Tensor x) {
  static const auto launch = launch_host_func();
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  auto out = torch::empty_like(x);
  const int n = x.numel();
  launch(side, wait, nullptr);
  swish_kernel<<<(n + 255) / 256, 256, 0, side>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
"""

ext = load_inline(name="swish_host_func_late", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
