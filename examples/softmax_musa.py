# SPDX-License-Identifier: Apache-2.0
import torch
import torch_musa
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

musa_source = r"""
#include <torch/extension.h>
#include "torch_musa/csrc/aten/musa/MUSAContext.h"
#include "torch_musa/csrc/core/MUSAException.h"

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

// The state of an online softmax: the maximum so far, and the sum of exp(x - max).
struct Partial {
  float max;
  float sum;
};

__device__ __forceinline__ float scaled(float sum, float max, float new_max) {
  return max == -INFINITY ? 0.0f : sum * expf(max - new_max);
}

__device__ __forceinline__ Partial merge(Partial a, Partial b) {
  Partial r;
  r.max = fmaxf(a.max, b.max);
  r.sum = scaled(a.sum, a.max, r.max) + scaled(b.sum, b.max, r.max);
  return r;
}

__device__ __forceinline__ Partial warp_merge(Partial p) {
  for (int mask = 16; mask > 0; mask >>= 1) {
    Partial other;
    other.max = __shfl_xor_sync(0xffffffff, p.max, mask);
    other.sum = __shfl_xor_sync(0xffffffff, p.sum, mask);
    p = merge(p, other);
  }
  return p;
}

__global__ void softmax_kernel(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ Partial partial[kWarps];
  const float* in = x + static_cast<size_t>(blockIdx.x) * cols;
  float* result = out + static_cast<size_t>(blockIdx.x) * cols;

  Partial p{-INFINITY, 0.0f};
  for (int i = threadIdx.x; i < cols; i += kThreads) {
    const float v = in[i];
    if (v > p.max) {
      p.sum = scaled(p.sum, p.max, v);
      p.max = v;
    }
    if (v != -INFINITY) p.sum += expf(v - p.max);
  }
  p = warp_merge(p);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = p;
  __syncthreads();
  p = partial[0];
  for (int w = 1; w < kWarps; ++w) p = merge(p, partial[w]);

  const float inverse = 1.0f / p.sum;
  for (int i = threadIdx.x; i < cols; i += kThreads) {
    result[i] = expf(in[i] - p.max) * inverse;
  }
}

torch::Tensor softmax_rows(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int rows = x.size(0);
  const int cols = x.size(1);
  softmax_kernel<<<rows, kThreads, 0, at::musa::getCurrentMUSAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), cols);
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

softmax_ext = load_inline(
    name="softmax_rows_ext",
    cpp_sources="torch::Tensor softmax_rows(torch::Tensor x);",
    extra_musa_cflags=["--offload-arch=mp_31"],
    musa_sources=musa_source,
    functions=["softmax_rows"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return softmax_ext.softmax_rows(x.contiguous())
