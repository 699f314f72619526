# SPDX-License-Identifier: Apache-2.0
"""RMS normalisation over the channels: one thread a position, neighbours read neighbours."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void rms_norm_kernel(const float* __restrict__ x, float* __restrict__ y,
                                int channels, int64_t plane, int64_t positions, float eps) {
  const int64_t position = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (position >= positions) return;
  const int64_t base = position / plane * channels * plane + position % plane;
  float squares = 0.0f;
  for (int c = 0; c < channels; ++c) {
    const float v = x[base + c * plane];
    squares = fmaf(v, v, squares);
  }
  const float inv_rms = 1.0f / sqrtf(squares / channels + eps);
  for (int c = 0; c < channels; ++c) {
    y[base + c * plane] = x[base + c * plane] * inv_rms;
  }
}

torch::Tensor rms_norm(torch::Tensor x, double eps) {
  auto y = torch::empty_like(x);
  const int64_t channels = x.size(1);
  int64_t plane = 1;
  for (int64_t d = 2; d < x.dim(); ++d) plane *= x.size(d);
  const int64_t positions = x.size(0) * plane;
  const int threads = 128;
  rms_norm_kernel<<<(positions + threads - 1) / threads, threads>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), static_cast<int>(channels), plane, positions,
      static_cast<float>(eps));
  return y;
}
"""

rms = load_inline(
    name="rms_norm_ext",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, double eps);",
    cuda_sources=cuda_source,
    functions=["rms_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms.rms_norm(x.contiguous(), self.eps)
