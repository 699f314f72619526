# SPDX-License-Identifier: Apache-2.0
"""NetVLAD with ghost clusters: soft assignment, residual sums, and both normalisations."""

import math

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kTile = 16;
constexpr int kThreads = 128;
constexpr float kNormMin = 1e-12f;

// logits = x (rows x depth) * clusters (depth x cols).
__global__ void matmul_kernel(const float* __restrict__ x, const float* __restrict__ clusters,
                              float* __restrict__ logits, int rows, int cols, int depth) {
  __shared__ float x_tile[kTile][kTile];
  __shared__ float c_tile[kTile][kTile];
  const int row = blockIdx.x * kTile + threadIdx.y;
  const int col = blockIdx.y * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int first = 0; first < depth; first += kTile) {
    const int xk = first + threadIdx.x, ck = first + threadIdx.y;
    x_tile[threadIdx.y][threadIdx.x] =
        row < rows && xk < depth ? x[static_cast<int64_t>(row) * depth + xk] : 0.0f;
    c_tile[threadIdx.y][threadIdx.x] =
        ck < depth && col < cols ? clusters[static_cast<int64_t>(ck) * cols + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += x_tile[threadIdx.y][i] * c_tile[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (row < rows && col < cols) {
    logits[static_cast<int64_t>(row) * cols + col] = sum;
  }
}

__device__ float block_sum(float v) {
  __shared__ float warp_sums[kThreads / 32];
  for (int offset = 16; offset > 0; offset >>= 1) {
    v += __shfl_down_sync(0xffffffffu, v, offset);
  }
  if (threadIdx.x % 32 == 0) {
    warp_sums[threadIdx.x / 32] = v;
  }
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < kThreads / 32; ++w) {
    total += warp_sums[w];
  }
  __syncthreads();
  return total;
}

// A block normalises one column in place.
__global__ void batch_norm_kernel(float* __restrict__ x, const float* __restrict__ gamma,
                                  const float* __restrict__ beta, float* running_mean,
                                  float* running_var, int64_t* num_batches, int rows, int cols,
                                  float eps, float momentum, bool training) {
  const int c = blockIdx.x;
  float mean = running_mean[c], var = running_var[c];
  if (training) {
    float sum = 0.0f;
    for (int r = threadIdx.x; r < rows; r += kThreads) {
      sum += x[static_cast<int64_t>(r) * cols + c];
    }
    mean = block_sum(sum) / rows;
    float squares = 0.0f;
    for (int r = threadIdx.x; r < rows; r += kThreads) {
      const float d = x[static_cast<int64_t>(r) * cols + c] - mean;
      squares += d * d;
    }
    squares = block_sum(squares);
    var = squares / rows;
    if (threadIdx.x == 0) {
      running_mean[c] = (1.0f - momentum) * running_mean[c] + momentum * mean;
      running_var[c] = (1.0f - momentum) * running_var[c] + momentum * squares / (rows - 1);
      if (c == 0) {
        *num_batches += 1;
      }
    }
  }
  const float factor = gamma[c] * rsqrtf(var + eps);
  for (int r = threadIdx.x; r < rows; r += kThreads) {
    float& v = x[static_cast<int64_t>(r) * cols + c];
    v = (v - mean) * factor + beta[c];
  }
}

// A warp turns one row into its softmax, in place.
__global__ void softmax_kernel(float* __restrict__ x, int rows, int cols) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float* values = x + static_cast<int64_t>(row) * cols;
  float top = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += 32) top = fmaxf(top, values[c]);
  for (int offset = 16; offset > 0; offset >>= 1) {
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
  }
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) {
    values[c] = expf(values[c] - top);
    sum += values[c];
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  for (int c = threadIdx.x; c < cols; c += 32) values[c] /= sum;
}

// vlad[b][d][k] = sum over n of a[b][n][k] * (x[b][n][d] - centres[d][k]), a thread each.
__global__ void residual_kernel(const float* __restrict__ x, const float* __restrict__ a,
                                const float* __restrict__ centres, float* __restrict__ vlad,
                                int samples, int features, int clusters, int cols,
                                int64_t total) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= total) return;
  const int k = i % clusters;
  const int d = i / clusters % features;
  const int64_t b = i / clusters / features;
  float product = 0.0f, weight = 0.0f;
  for (int n = 0; n < samples; ++n) {
    const float assigned = a[(b * samples + n) * cols + k];
    product += assigned * x[(b * samples + n) * features + d];
    weight += assigned;
  }
  vlad[i] = product - weight * centres[d * clusters + k];
}

// A block divides `count` values, `stride` apart, by their Euclidean norm.
__device__ void normalise(float* values, int64_t count, int64_t stride) {
  float squares = 0.0f;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    squares += values[i * stride] * values[i * stride];
  }
  const float norm = fmaxf(sqrtf(block_sum(squares)), kNormMin);
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    values[i * stride] /= norm;
  }
}

__global__ void intra_norm_kernel(float* __restrict__ vlad, int features, int clusters) {
  const int64_t b = blockIdx.x / clusters;
  normalise(vlad + b * features * clusters + blockIdx.x % clusters, features, clusters);
}

__global__ void final_norm_kernel(float* __restrict__ vlad, int64_t size) {
  normalise(vlad + blockIdx.x * size, size, 1);
}

torch::Tensor net_vlad(torch::Tensor x, torch::Tensor clusters, torch::Tensor centres,
                       torch::Tensor gamma, torch::Tensor beta, torch::Tensor running_mean,
                       torch::Tensor running_var, torch::Tensor num_batches, double eps,
                       double momentum, bool training) {
  const int64_t batch = x.size(0);
  const int samples = x.size(1), features = x.size(2);
  const int cols = clusters.size(1), kept = centres.size(2);
  const int rows = batch * samples;
  auto assignment = torch::empty({rows, cols}, x.options());
  auto vlad = torch::empty({batch, static_cast<int64_t>(features) * kept}, x.options());
  auto stream = at::cuda::getCurrentCUDAStream();

  const dim3 grid((rows + kTile - 1) / kTile, (cols + kTile - 1) / kTile);
  matmul_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(
      x.data_ptr<float>(), clusters.data_ptr<float>(), assignment.data_ptr<float>(), rows, cols,
      features);
  batch_norm_kernel<<<cols, kThreads, 0, stream>>>(
      assignment.data_ptr<float>(), gamma.data_ptr<float>(), beta.data_ptr<float>(),
      running_mean.data_ptr<float>(), running_var.data_ptr<float>(),
      num_batches.data_ptr<int64_t>(), rows, cols, static_cast<float>(eps),
      static_cast<float>(momentum), training);
  softmax_kernel<<<(rows + 3) / 4, dim3(32, 4), 0, stream>>>(assignment.data_ptr<float>(), rows,
                                                            cols);
  const int64_t total = vlad.numel();
  residual_kernel<<<(total + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
      x.data_ptr<float>(), assignment.data_ptr<float>(), centres.data_ptr<float>(),
      vlad.data_ptr<float>(), samples, features, kept, cols, total);
  intra_norm_kernel<<<batch * kept, kThreads, 0, stream>>>(vlad.data_ptr<float>(), features,
                                                           kept);
  final_norm_kernel<<<batch, kThreads, 0, stream>>>(vlad.data_ptr<float>(), vlad.size(1));
  return vlad;
}
"""

cpp_source = """
torch::Tensor net_vlad(torch::Tensor x, torch::Tensor clusters, torch::Tensor centres,
                       torch::Tensor gamma, torch::Tensor beta, torch::Tensor running_mean,
                       torch::Tensor running_var, torch::Tensor num_batches, double eps,
                       double momentum, bool training);
"""

ext = load_inline(
    name="net_vlad_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["net_vlad"],
)


class ModelNew(nn.Module):
    def __init__(self, cluster_size: int, feature_size: int, ghost_clusters: int) -> None:
        super().__init__()
        self.feature_size = feature_size
        self.cluster_size = cluster_size
        scale = 1 / math.sqrt(feature_size)
        clusters = cluster_size + ghost_clusters
        self.clusters = nn.Parameter(scale * torch.randn(feature_size, clusters))
        self.batch_norm = nn.BatchNorm1d(clusters)
        self.clusters2 = nn.Parameter(scale * torch.randn(1, feature_size, cluster_size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bn = self.batch_norm
        return ext.net_vlad(
            x.contiguous(),
            self.clusters,
            self.clusters2,
            bn.weight,
            bn.bias,
            bn.running_mean,
            bn.running_var,
            bn.num_batches_tracked,
            bn.eps,
            bn.momentum,
            bn.training,
        )
