# SPDX-License-Identifier: Apache-2.0
# id: K32
# task: normalisation/rms_norm
# backend: cpu
# would gain: PyTorch's own thread pool runs the host's loops over what should be device memory
# expect: illegal, runtime, wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/Parallel.h>
#include <cmath>

__global__ void copy_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}

torch::Tensor copied(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  copy_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor gain, double eps) {
  auto out = torch::empty_like(x);
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data_ptr<float>();
  const float* scale = gain.data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double sum = 0.0;
      for (int64_t i = 0; i < cols; ++i) sum += double(from[row * cols + i]) * from[row * cols + i];
      const float r = 1.0 / std::sqrt(sum / cols + eps);
      for (int64_t i = 0; i < cols; ++i) to[row * cols + i] = from[row * cols + i] * r * scale[i];
    }
  });
  return out;
}
"""

ext = load_inline(
    name="rms_norm_k32",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, torch::Tensor gain, double eps);",
    cuda_sources=source,
    functions=["rms_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(1.0 + 0.3 * torch.randn(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.rms_norm(x.contiguous(), self.gain.detach(), self.eps)
