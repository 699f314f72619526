# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

constexpr int kThreads = 256;

__device__ float sum_over_block(float value, float* scratch) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  value = cg::reduce(warp, value, cg::plus<float>());
  if (warp.thread_rank() == 0) scratch[warp.meta_group_rank()] = value;
  block.sync();
  float total = 0.0f;
  for (unsigned int i = 0; i < warp.meta_group_size(); ++i) total += scratch[i];
  block.sync();
  return total;
}

// One block a group of one image.
__global__ void group_norm_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                                  const float* __restrict__ bias, float* __restrict__ out,
                                  int groups, int channels_per_group, int plane, float eps) {
  __shared__ float scratch[kThreads / 32];
  const int group = blockIdx.x % groups;
  const int size = channels_per_group * plane;
  const size_t offset = static_cast<size_t>(blockIdx.x) * size;

  float sum = 0.0f;
  for (int i = threadIdx.x; i < size; i += blockDim.x) sum += x[offset + i];
  const float mean = sum_over_block(sum, scratch) / size;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    const float d = x[offset + i] - mean;
    squares += d * d;
  }
  const float scale = rsqrtf(sum_over_block(squares, scratch) / size + eps);

  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    const int c = group * channels_per_group + i / plane;
    out[offset + i] = (x[offset + i] - mean) * scale * weight[c] + bias[c];
  }
}

torch::Tensor group_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups,
                         double eps) {
  const int64_t batch = x.size(0);
  const int64_t channels = x.size(1);
  TORCH_CHECK(channels % groups == 0, "groups must divide the channels");
  auto out = torch::empty_like(x);
  group_norm_kernel<<<batch * groups, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
      out.data_ptr<float>(), groups, channels / groups, x.size(2) * x.size(3), eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

cpp_source = """
torch::Tensor group_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups,
                         double eps);
"""

group_norm_ext = load_inline(
    name="group_norm_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["group_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, groups: int, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = self.norm
        return group_norm_ext.group_norm(x.contiguous(), n.weight, n.bias, n.num_groups, n.eps)
