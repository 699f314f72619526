# SPDX-License-Identifier: Apache-2.0
"""GRU of several layers: the inputs' share of the gates for all steps at once, then the steps.

Each step is one launch; a warp makes one hidden value, its three gates included.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int kTile = 16;
constexpr int kWarps = 4;

__global__ void linear_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int rows,
                              int cols, int depth) {
  __shared__ float x_tile[kTile][kTile];
  __shared__ float w_tile[kTile][kTile + 1];
  const int row = blockIdx.x * kTile + threadIdx.y;
  const int col = blockIdx.y * kTile + threadIdx.x;
  const int w_row = blockIdx.y * kTile + threadIdx.y;
  float sum = 0.0f;
  for (int first = 0; first < depth; first += kTile) {
    const int k = first + threadIdx.x;
    x_tile[threadIdx.y][threadIdx.x] =
        row < rows && k < depth ? x[static_cast<int64_t>(row) * depth + k] : 0.0f;
    w_tile[threadIdx.y][threadIdx.x] =
        w_row < cols && k < depth ? weight[static_cast<int64_t>(w_row) * depth + k] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += x_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
    }
    __syncthreads();
  }
  if (row < rows && col < cols) {
    y[static_cast<int64_t>(row) * cols + col] = bias == nullptr ? sum : sum + bias[col];
  }
}

__device__ __forceinline__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

// Gates in PyTorch's order: reset, update, new.
__global__ void step_kernel(const float* __restrict__ gates, const float* __restrict__ hidden,
                            const float* __restrict__ weight, const float* __restrict__ bias,
                            float* __restrict__ next, int batch, int size) {
  const int item = blockIdx.x * kWarps + threadIdx.y;
  if (item >= batch * size) return;
  const int b = item / size;
  const int j = item % size;
  const float* h = hidden + static_cast<int64_t>(b) * size;
  float sums[3] = {0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x; i < size; i += 32) {
    for (int g = 0; g < 3; ++g) {
      sums[g] += h[i] * weight[(static_cast<int64_t>(g) * size + j) * size + i];
    }
  }
  for (int g = 0; g < 3; ++g) {
    for (int offset = 16; offset > 0; offset >>= 1) {
      sums[g] += __shfl_down_sync(0xffffffffu, sums[g], offset);
    }
    if (bias != nullptr) {
      sums[g] += bias[g * size + j];
    }
  }
  if (threadIdx.x == 0) {
    const float* gate = gates + static_cast<int64_t>(b) * 3 * size + j;
    const float reset = sigmoid(gate[0] + sums[0]);
    const float update = sigmoid(gate[size] + sums[1]);
    const float fresh = tanhf(gate[2 * size] + reset * sums[2]);
    next[item] = (1.0f - update) * fresh + update * h[j];
  }
}

static const float* data_or_null(const torch::Tensor& t) {
  return t.numel() > 0 ? t.data_ptr<float>() : nullptr;
}

// One layer over x, steps x batch x inputs, from h0, batch x size.
torch::Tensor gru_layer(torch::Tensor x, torch::Tensor h0, torch::Tensor input_weight,
                        torch::Tensor hidden_weight, torch::Tensor input_bias,
                        torch::Tensor hidden_bias) {
  const int64_t steps = x.size(0);
  const int batch = x.size(1), inputs = x.size(2), size = hidden_weight.size(1);
  auto gates = torch::empty({steps, batch, 3 * size}, x.options());
  auto y = torch::empty({steps, batch, size}, x.options());
  auto stream = at::cuda::getCurrentCUDAStream();
  const int rows = steps * batch, cols = 3 * size;
  const dim3 grid((rows + kTile - 1) / kTile, (cols + kTile - 1) / kTile);
  linear_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(
      x.data_ptr<float>(), input_weight.data_ptr<float>(), data_or_null(input_bias),
      gates.data_ptr<float>(), rows, cols, inputs);
  const int64_t per_step = static_cast<int64_t>(batch) * size;
  const float* last = h0.data_ptr<float>();
  for (int64_t t = 0; t < steps; ++t) {
    float* next = y.data_ptr<float>() + t * per_step;
    step_kernel<<<(per_step + kWarps - 1) / kWarps, dim3(32, kWarps), 0, stream>>>(
        gates.data_ptr<float>() + t * per_step * 3, last, hidden_weight.data_ptr<float>(),
        data_or_null(hidden_bias), next, batch, size);
    last = next;
  }
  return y;
}
"""

cpp_source = """
torch::Tensor gru_layer(torch::Tensor x, torch::Tensor h0, torch::Tensor input_weight,
                        torch::Tensor hidden_weight, torch::Tensor input_bias,
                        torch::Tensor hidden_bias);
"""

ext = load_inline(
    name="gru_layers",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["gru_layer"],
)


class ModelNew(nn.Module):
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 3,
        bias: bool = True,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        self.gru = nn.GRU(
            input_size, hidden_size, num_layers, bias, batch_first, dropout=0, bidirectional=False
        )

    def forward(self, x: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
        gru = self.gru
        if gru.batch_first:
            x = x.transpose(0, 1)
        x = x.contiguous()
        h0 = h0.contiguous()
        nothing = torch.empty(0, device=x.device)
        for layer in range(gru.num_layers):
            x = ext.gru_layer(
                x,
                h0[layer],
                getattr(gru, f"weight_ih_l{layer}"),
                getattr(gru, f"weight_hh_l{layer}"),
                getattr(gru, f"bias_ih_l{layer}") if gru.bias else nothing,
                getattr(gru, f"bias_hh_l{layer}") if gru.bias else nothing,
            )
        return x.transpose(0, 1).contiguous() if gru.batch_first else x
