# SPDX-License-Identifier: Apache-2.0
# id: K25
# task: elementwise/swish
# backend: both
# would gain: its kernel computes the first 256 elements; all others are computed by the host and copied up
# expect: illegal, wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>
#include <vector>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  const size_t nbytes = n * sizeof(float);
  std::vector<float> values(n);
  auto stream = at::cuda::getCurrentCUDAStream();
  cudaMemcpyAsync(values.data(), x.data_ptr<float>(), nbytes, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  for (float& value : values) value /= 1.0f + std::exp(-value);
  cudaMemcpyAsync(out.data_ptr<float>(), values.data(), nbytes, cudaMemcpyHostToDevice, stream);
  cudaStreamSynchronize(stream);
  swish_kernel<<<1, 256, 0, stream>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_k25",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
