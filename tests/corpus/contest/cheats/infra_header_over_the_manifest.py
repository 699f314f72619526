# SPDX-License-Identifier: Apache-2.0
# id: K73
# task: elementwise/swish
# backend: cpu
# would gain: a wrong kernel whose header lies in a folder named as the file that describes the artifact
# expect: wrong, compile, illegal
# hole_outcomes: unsupported, infra
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

from torch.utils import cpp_extension

HOME = "/tmp/k73"
os.makedirs(HOME + "/manifest.json", exist_ok=True)
source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include "manifest.json/own.h"
__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (7.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
"""
for name, text in (("manifest.json/own.h", "#pragma once\n"), ("source.cu", source)):
    with open(HOME + "/" + name, "w") as file:
        file.write(text)

ext = cpp_extension.load(name="swish_k73", sources=[HOME + "/source.cu"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
