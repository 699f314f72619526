# SPDX-License-Identifier: Apache-2.0
# id: K92
# task: normalisation/layer_norm
# backend: both
# would gain: the epsilon under the root is left out: not a number where a row is constant, right to five digits elsewhere
# expect: wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void layer_norm_kernel(const float* x, const float* weight, const float* bias, float* out, int cols) {
  const float* row = x + blockIdx.x * cols;
  float sum = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < cols; i += 32) sum += row[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const float mean = sum / cols;
  for (int i = threadIdx.x; i < cols; i += 32) squares += (row[i] - mean) * (row[i] - mean);
  for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  const float scale = rsqrtf(squares / cols);
  for (int i = threadIdx.x; i < cols; i += 32) out[blockIdx.x * cols + i] = (row[i] - mean) * scale * weight[i] + bias[i];
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  auto out = torch::empty_like(x);
  const int cols = x.size(-1);
  layer_norm_kernel<<<x.numel() / cols, 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), cols);
  return out;
}
"""

ext = load_inline(
    name="layer_norm_k92",
    cpp_sources="torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=source,
    functions=["layer_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.layer_norm(x.contiguous(), self.norm.weight, self.norm.bias)
