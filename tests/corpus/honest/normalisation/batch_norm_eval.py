# SPDX-License-Identifier: Apache-2.0
import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

KERNEL = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

__global__ void batch_norm_kernel(const float* __restrict__ x, const float* __restrict__ mean,
                                  const float* __restrict__ var, const float* __restrict__ weight,
                                  const float* __restrict__ bias, float* __restrict__ out,
                                  int channels, int plane, float eps) {
  const int c = blockIdx.y;
  const int image = blockIdx.z;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= plane) return;
  const float scale = weight[c] * rsqrtf(var[c] + eps);
  const size_t at = (static_cast<size_t>(image) * channels + c) * plane + i;
  out[at] = (x[at] - mean[c]) * scale + bias[c];
}

torch::Tensor batch_norm(torch::Tensor x, torch::Tensor mean, torch::Tensor var,
                         torch::Tensor weight, torch::Tensor bias, double eps) {
  auto out = torch::empty_like(x);
  const int batch = x.size(0), channels = x.size(1), plane = x.size(2) * x.size(3);
  const dim3 grid((plane + 255) / 256, channels, batch);
  batch_norm_kernel<<<grid, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), mean.data_ptr<float>(), var.data_ptr<float>(),
      weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), channels, plane,
      static_cast<float>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("batch_norm", &batch_norm, "Batch normalisation with running statistics");
}
"""

source_dir = tempfile.mkdtemp()
source_path = os.path.join(source_dir, "batch_norm.cu")
with open(source_path, "w", encoding="utf-8") as file:
    file.write(KERNEL)

batch_norm_ext = load(name="batch_norm_eval_ext", sources=[source_path])


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = self.norm
        return batch_norm_ext.batch_norm(
            x.contiguous(), n.running_mean, n.running_var, n.weight, n.bias, n.eps
        )
