# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

namespace {

constexpr int kWarpsPerBlock = 8;

__device__ float warp_max(float v) {
  for (int offset = 16; offset; offset >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, offset));
  return v;
}

__device__ float warp_sum(float v) {
  for (int offset = 16; offset; offset >>= 1) v += __shfl_xor_sync(~0u, v, offset);
  return v;
}

// One warp a query.
__global__ void masked_softmax_kernel(const float* __restrict__ scores,
                                      const bool* __restrict__ keep, float* __restrict__ out,
                                      int num_rows, int queries, int keys, float scale) {
  const int warp = threadIdx.x >> 5;
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * kWarpsPerBlock + warp;
  if (row >= num_rows) return;
  const float* in = scores + static_cast<size_t>(row) * keys;
  float* result = out + static_cast<size_t>(row) * keys;
  const bool* row_keep = keep + static_cast<size_t>(row / queries) * keys;

  float max = -INFINITY;
  for (int k = lane; k < keys; k += 32) {
    if (row_keep[k]) max = fmaxf(max, in[k] * scale);
  }
  max = warp_max(max);
  float sum = 0.0f;
  for (int k = lane; k < keys; k += 32) {
    if (row_keep[k]) sum += expf(in[k] * scale - max);
  }
  sum = warp_sum(sum);
  for (int k = lane; k < keys; k += 32) {
    result[k] = (row_keep[k] ? expf(in[k] * scale - max) : 0.0f) / sum;
  }
}

}  // namespace

torch::Tensor masked_softmax(torch::Tensor scores, torch::Tensor keep, double scale) {
  TORCH_CHECK(keep.scalar_type() == at::kBool, "keep must be bool");
  TORCH_CHECK(scores.dim() == 3 && keep.dim() == 2, "scores [b, q, k] and keep [b, k]");
  auto out = torch::empty_like(scores);
  const int queries = scores.size(1);
  const int keys = scores.size(2);
  const int num_rows = scores.size(0) * queries;
  const int blocks = (num_rows + kWarpsPerBlock - 1) / kWarpsPerBlock;
  masked_softmax_kernel<<<blocks, kWarpsPerBlock * 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      scores.data_ptr<float>(), keep.data_ptr<bool>(), out.data_ptr<float>(), num_rows, queries,
      keys, static_cast<float>(scale));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

cpp_source = """
torch::Tensor masked_softmax(torch::Tensor scores, torch::Tensor keep, double scale);
"""

masked_softmax_ext = load_inline(
    name="masked_softmax_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["masked_softmax"],
)


class ModelNew(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, scores: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return masked_softmax_ext.masked_softmax(scores.contiguous(), keep.contiguous(), self.scale)
