# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cooperative_groups.h>

#include <tuple>

namespace cg = cooperative_groups;

constexpr int kRowsPerBlock = 4;

// One warp a token. The sum is written first and read again by the lane that wrote it.
__global__ void add_layer_norm_kernel(const float* __restrict__ residual,
                                      const float* __restrict__ branch,
                                      const float* __restrict__ weight,
                                      const float* __restrict__ bias, float* total,
                                      float* __restrict__ normal, int tokens, int features,
                                      float eps) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int token = blockIdx.x * kRowsPerBlock + threadIdx.x / 32;
  if (token >= tokens) return;
  const int lane = warp.thread_rank();
  const int64_t offset = static_cast<int64_t>(token) * features;

  float sum = 0.0f;
  for (int i = lane; i < features; i += warp.size()) {
    const float v = residual[offset + i] + branch[offset + i];
    total[offset + i] = v;
    sum += v;
  }
  for (int distance = warp.size() / 2; distance > 0; distance /= 2) {
    sum += warp.shfl_xor(sum, distance);
  }
  const float mean = sum / features;

  float squares = 0.0f;
  for (int i = lane; i < features; i += warp.size()) {
    const float d = total[offset + i] - mean;
    squares += d * d;
  }
  for (int distance = warp.size() / 2; distance > 0; distance /= 2) {
    squares += warp.shfl_xor(squares, distance);
  }
  const float scale = rsqrtf(squares / features + eps);
  for (int i = lane; i < features; i += warp.size()) {
    normal[offset + i] = (total[offset + i] - mean) * scale * weight[i] + bias[i];
  }
}

std::tuple<torch::Tensor, torch::Tensor> add_layer_norm(torch::Tensor residual,
                                                        torch::Tensor branch,
                                                        torch::Tensor weight,
                                                        torch::Tensor bias, double eps) {
  const int tokens = residual.size(0), features = residual.size(1);
  auto total = torch::empty_like(residual);
  auto normal = torch::empty_like(residual);
  const int blocks = (tokens + kRowsPerBlock - 1) / kRowsPerBlock;
  add_layer_norm_kernel<<<blocks, kRowsPerBlock * 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      residual.data_ptr<float>(), branch.data_ptr<float>(), weight.data_ptr<float>(),
      bias.data_ptr<float>(), total.data_ptr<float>(), normal.data_ptr<float>(), tokens, features,
      static_cast<float>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {total, normal};
}
"""

cpp_source = """
std::tuple<torch::Tensor, torch::Tensor> add_layer_norm(torch::Tensor residual,
                                                        torch::Tensor branch,
                                                        torch::Tensor weight,
                                                        torch::Tensor bias, double eps);
"""

add_layer_norm_ext = load_inline(
    name="add_layer_norm_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["add_layer_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(
        self, residual: torch.Tensor, branch: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total, normal = add_layer_norm_ext.add_layer_norm(
            residual.contiguous(),
            branch.contiguous(),
            self.norm.weight,
            self.norm.bias,
            self.norm.eps,
        )
        return total, normal
