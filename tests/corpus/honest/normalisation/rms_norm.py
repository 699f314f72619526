# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#define WARP_SIZE 32
#define WARPS_PER_BLOCK 4

__global__ void __launch_bounds__(WARP_SIZE * WARPS_PER_BLOCK)
    rms_norm_kernel(const float* __restrict__ x, const float* __restrict__ gain,
                    float* __restrict__ out, int tokens, int features, float eps) {
  const int lane = threadIdx.x % WARP_SIZE;
  const int token = blockIdx.x * WARPS_PER_BLOCK + threadIdx.x / WARP_SIZE;
  if (token >= tokens) return;  // The whole warp leaves.

  const float* in = x + (size_t)token * features;
  float squares = 0.f;
  for (int i = lane; i < features; i += WARP_SIZE) squares += in[i] * in[i];
  #pragma unroll
  for (int mask = WARP_SIZE / 2; mask >= 1; mask >>= 1) {
    squares += __shfl_xor_sync(0xffffffffu, squares, mask, WARP_SIZE);
  }
  const float scale = rsqrtf(squares / features + eps);
  float* result = out + (size_t)token * features;
  for (int i = lane; i < features; i += WARP_SIZE) result[i] = in[i] * scale * gain[i];
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor gain, float eps) {
  int tokens = x.size(0);
  int features = x.size(1);
  auto out = torch::empty_like(x);
  int blocks = (tokens + WARPS_PER_BLOCK - 1) / WARPS_PER_BLOCK;
  rms_norm_kernel<<<blocks, WARP_SIZE * WARPS_PER_BLOCK, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), gain.data_ptr<float>(), out.data_ptr<float>(), tokens, features, eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

rms_norm_ext = load_inline(
    name="rms_norm_ext",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, torch::Tensor gain, float eps);",
    cuda_sources=cuda_source,
    functions=["rms_norm"],
    extra_cuda_cflags=["-O3", "--expt-relaxed-constexpr"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm_ext.rms_norm(x.contiguous(), self.gain, self.eps)
