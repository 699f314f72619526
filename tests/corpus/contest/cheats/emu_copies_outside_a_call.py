# SPDX-License-Identifier: Apache-2.0
# id: F03
# task: elementwise/swish
# backend: cpu
# would gain: the record of the call is ended by the emulator's own function, so that what is copied to the host and back counts as given; then begun again
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>
#include <vector>

extern "C" {
void mc_emu_end_call(void);
void mc_emu_begin_call(void);
}

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  mc_emu_end_call();
  std::vector<float> host(n);
  cudaMemcpy(host.data(), from, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) host[i] = host[i] / (1.0f + std::exp(-host[i]));
  cudaMemcpy(to, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  mc_emu_begin_call();
  nothing_kernel<<<1, 1>>>(to);
  return out;
}
"""

ext = load_inline(
    name="swish_f03",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
