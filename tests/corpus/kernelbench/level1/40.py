# SPDX-License-Identifier: Apache-2.0
"""LayerNorm over the last dimensions: Welford's running mean and variance, merged by shuffles."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

struct Moments {
  float count;
  float mean;
  float m2;  // The sum of squared deviations from the mean.
};

__device__ __forceinline__ Moments combine(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0.0f) {
    return a;
  }
  const float delta = b.mean - a.mean;
  const float share = b.count / count;
  return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
}

__device__ Moments warp_combine(Moments v) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    Moments other;
    other.count = __shfl_down_sync(0xffffffffu, v.count, offset);
    other.mean = __shfl_down_sync(0xffffffffu, v.mean, offset);
    other.m2 = __shfl_down_sync(0xffffffffu, v.m2, offset);
    v = combine(v, other);
  }
  return v;
}

__global__ void layer_norm_kernel(const float* __restrict__ x, const float* __restrict__ gamma,
                                  const float* __restrict__ beta, float* __restrict__ y,
                                  int64_t n, float eps) {
  __shared__ Moments warp_moments[32];
  __shared__ float shared_mean, shared_rstd;
  const float* in = x + static_cast<int64_t>(blockIdx.x) * n;
  float* out = y + static_cast<int64_t>(blockIdx.x) * n;

  Moments mine = {0.0f, 0.0f, 0.0f};
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float v = in[i];
    mine.count += 1.0f;
    const float delta = v - mine.mean;
    mine.mean += delta / mine.count;
    mine.m2 += delta * (v - mine.mean);
  }
  mine = warp_combine(mine);
  const int lane = threadIdx.x % warpSize;
  const int warp = threadIdx.x / warpSize;
  if (lane == 0) {
    warp_moments[warp] = mine;
  }
  __syncthreads();
  if (warp == 0) {
    const int warps = blockDim.x / warpSize;
    mine = lane < warps ? warp_moments[lane] : Moments{0.0f, 0.0f, 0.0f};
    mine = warp_combine(mine);
    if (lane == 0) {
      shared_mean = mine.mean;
      shared_rstd = rsqrtf(mine.m2 / n + eps);
    }
  }
  __syncthreads();
  const float mean = shared_mean;
  const float rstd = shared_rstd;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = (in[i] - mean) * rstd * gamma[i] + beta[i];
  }
}

torch::Tensor layer_norm_cuda(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta,
                              double eps) {
  const int64_t n = gamma.numel();
  const int64_t rows = x.numel() / n;
  auto y = torch::empty_like(x);
  const int threads = n >= 16384 ? 1024 : 256;
  layer_norm_kernel<<<rows, threads>>>(x.data_ptr<float>(), gamma.data_ptr<float>(),
                                       beta.data_ptr<float>(), y.data_ptr<float>(), n,
                                       static_cast<float>(eps));
  return y;
}
"""

layer_norm = load_inline(
    name="layer_norm_welford",
    cpp_sources=(
        "torch::Tensor layer_norm_cuda(torch::Tensor x, torch::Tensor gamma, "
        "torch::Tensor beta, double eps);"
    ),
    cuda_sources=cuda_source,
    functions=["layer_norm_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple) -> None:
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return layer_norm.layer_norm_cuda(
            x.contiguous(), self.ln.weight, self.ln.bias, self.ln.eps
        )
