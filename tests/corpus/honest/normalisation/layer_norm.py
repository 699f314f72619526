# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

template <typename T>
struct Accumulator {
  using type = float;
};
template <>
struct Accumulator<double> {
  using type = double;
};

template <typename T>
__device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) v += __shfl_xor_sync(0xffffffff, v, mask);
  return v;
}

// Every thread gets the sum over the block. The first barrier lets `shared` be used again.
template <typename T>
__device__ T block_sum(T v, T* shared) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  v = warp_sum(v);
  __syncthreads();
  if (lane == 0) shared[warp] = v;
  __syncthreads();
  const int num_warps = (blockDim.x + 31) / 32;
  v = lane < num_warps ? shared[lane] : T(0);
  return warp_sum(v);
}

template <typename scalar_t>
__global__ void layer_norm_kernel(const scalar_t* __restrict__ x,
                                  const scalar_t* __restrict__ weight,
                                  const scalar_t* __restrict__ bias, scalar_t* __restrict__ out,
                                  int features, float eps) {
  using acc_t = typename Accumulator<scalar_t>::type;
  __shared__ acc_t shared[32];
  const scalar_t* in = x + static_cast<int64_t>(blockIdx.x) * features;
  scalar_t* result = out + static_cast<int64_t>(blockIdx.x) * features;

  acc_t sum = 0;
  for (int i = threadIdx.x; i < features; i += blockDim.x) sum += static_cast<acc_t>(in[i]);
  const acc_t mean = block_sum(sum, shared) / features;

  acc_t squares = 0;
  for (int i = threadIdx.x; i < features; i += blockDim.x) {
    const acc_t d = static_cast<acc_t>(in[i]) - mean;
    squares += d * d;
  }
  const acc_t var = block_sum(squares, shared) / features;
  const acc_t inverse = acc_t(1) / sqrt(var + static_cast<acc_t>(eps));

  for (int i = threadIdx.x; i < features; i += blockDim.x) {
    const acc_t normal = (static_cast<acc_t>(in[i]) - mean) * inverse;
    result[i] = static_cast<scalar_t>(normal * static_cast<acc_t>(weight[i]) +
                                      static_cast<acc_t>(bias[i]));
  }
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
  const int features = x.size(-1);
  const int rows = x.numel() / features;
  auto out = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "layer_norm", [&] {
        layer_norm_kernel<scalar_t><<<rows, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), bias.data_ptr<scalar_t>(),
            out.data_ptr<scalar_t>(), features, static_cast<float>(eps));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      });
  return out;
}
"""

cpp_source = (
    "torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, "
    "double eps);"
)

layer_norm_ext = load_inline(
    name="layer_norm_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["layer_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.norm
        return layer_norm_ext.layer_norm(x.contiguous(), norm.weight, norm.bias, norm.eps)
