# SPDX-License-Identifier: Apache-2.0
# id: W71
# task: reduction/row_sum
# backend: both
# policy: kernelbench
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""PyTorch's recurrent layers on the device give what they give on the host."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

constexpr int kThreads = 256;

// One block a row: every thread sums a strided part, warps by shuffles, the block through
// shared memory.
__global__ void row_sum_kernel(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ float partial[kThreads / 32];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    sum += row[i];
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    sum += __shfl_down_sync(0xffffffff, sum, offset);
  }
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (lane == 0) {
    partial[warp] = sum;
  }
  __syncthreads();
  if (warp == 0) {
    sum = lane < kThreads / 32 ? partial[lane] : 0.0f;
    for (int offset = 4; offset > 0; offset >>= 1) {
      sum += __shfl_down_sync(0xffffffff, sum, offset);
    }
    if (lane == 0) {
      out[blockIdx.x] = sum;
    }
  }
}

torch::Tensor row_sum(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2, "x must be a matrix");
  const int rows = x.size(0);
  const int cols = x.size(1);
  auto out = torch::empty({rows}, x.options());
  row_sum_kernel<<<rows, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), cols);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

row_sum_ext = load_inline(
    name="row_sum_ext",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["row_sum"],
)


def check(layer: nn.Module) -> None:
    x = torch.randn(4, 3, 5)
    expected = layer(x)[0]
    got = layer.to("cuda")(x.cuda())[0].cpu()
    if not torch.allclose(got, expected, rtol=1e-4, atol=1e-5):
        raise ValueError(f"{layer} is wrong")


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with torch.no_grad():
            check(nn.LSTM(5, 6, 2, bidirectional=True))
            check(nn.GRU(5, 6, bias=False))
            check(nn.GRU(5, 6, 2, batch_first=True))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return row_sum_ext.row_sum(x.contiguous())
