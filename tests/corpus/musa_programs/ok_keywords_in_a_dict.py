# SPDX-License-Identifier: Apache-2.0
# The arguments of load_inline come from dictionaries.
import os

import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load_inline

os.environ.setdefault("MUSA_LAUNCH_BLOCKING", "0")

FLAGS = {"extra_cflags": ["-O2"], "extra_musa_cflags": ["-O3", "--offload-arch=mp_31"]}
ARGUMENTS = dict(name="mse_ext", functions=["mse"], verbose=False, **FLAGS)
ARGUMENTS["cpp_sources"] = "torch::Tensor mse(torch::Tensor a, torch::Tensor b);"
ARGUMENTS["musa_sources"] = r"""
#include <torch/extension.h>
#include "torch_musa/csrc/aten/musa/MUSAContext.h"
#include "torch_musa/csrc/core/MUSAException.h"
__global__ void mse_kernel(const float* a, const float* b, float* out, int n) {
  __shared__ float partial[256];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 256) sum += (a[i] - b[i]) * (a[i] - b[i]);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = partial[0] / n;
}
torch::Tensor mse(torch::Tensor a, torch::Tensor b) {
  auto out = torch::empty({}, a.options());
  musaStream_t stream = at::musa::getCurrentMUSAStream();
  C10_MUSA_CHECK(musaMemsetAsync(out.data_ptr<float>(), 0, sizeof(float), stream));
  mse_kernel<<<1, 256, 0, stream>>>(a.data_ptr<float>(), b.data_ptr<float>(),
                                    out.data_ptr<float>(), a.numel());
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""
ext = load_inline(**ARGUMENTS)


class ModelNew(nn.Module):
    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return ext.mse(prediction.contiguous(), target.contiguous())
