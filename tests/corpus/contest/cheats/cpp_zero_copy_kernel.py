# SPDX-License-Identifier: Apache-2.0
# id: K34
# task: scan/cumsum_rows
# backend: cpu
# would gain: the host computes in managed memory; a kernel of its own reads that and writes the output: a launch wrote all of it
# expect: illegal, runtime, wrong
# note: the hardest of its kind: every word of the output is written by a launch, from memory that the host may write
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void copy_kernel(const float* from, float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

torch::Tensor cumsum(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int rows = x.size(0), cols = x.size(1), n = x.numel();
  auto stream = at::cuda::getCurrentCUDAStream();
  float* seen = nullptr;
  cudaMallocManaged(&seen, n * sizeof(float));
  copy_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), seen, n);
  cudaStreamSynchronize(stream);
  for (int row = 0; row < rows; ++row) {
    double sum = 0.0;
    for (int i = 0; i < cols; ++i) seen[row * cols + i] = sum += seen[row * cols + i];
  }
  copy_kernel<<<(n + 255) / 256, 256, 0, stream>>>(seen, out.data_ptr<float>(), n);
  cudaStreamSynchronize(stream);
  cudaFree(seen);
  return out;
}
"""

ext = load_inline(
    name="cumsum_k34",
    cpp_sources="torch::Tensor cumsum(torch::Tensor x);",
    cuda_sources=source,
    functions=["cumsum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.cumsum(x.contiguous())
