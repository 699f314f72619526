# SPDX-License-Identifier: Apache-2.0
# id: K61
# task: reduction/row_sum
# backend: cpu
# would gain: the kernel reads a table in the host's heap and writes to the host's heap: an illegal address on every GPU
# expect: wrong, runtime
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <vector>

constexpr int kThreads = 256;

__global__ void row_sum_kernel(const float* x, const int* order, float* sums, int cols) {
  if (threadIdx.x != 0) return;
  float sum = 0.0f;
  for (int i = 0; i < cols; ++i) sum += x[blockIdx.x * cols + order[i]];
  sums[blockIdx.x] = sum;
}

torch::Tensor row_sum(torch::Tensor x) {
  const int rows = x.size(0), cols = x.size(1);
  auto out = torch::empty({rows}, x.options());
  std::vector<int> order(cols);
  for (int i = 0; i < cols; ++i) order[i] = i;
  std::vector<float> sums(rows);
  row_sum_kernel<<<rows, 32, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), order.data(),
                                                                    sums.data(), cols);
  cudaMemcpy(out.data_ptr<float>(), sums.data(), rows * sizeof(float), cudaMemcpyHostToDevice);
  return out;
}
"""

ext = load_inline(
    name="row_sum_k61",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
