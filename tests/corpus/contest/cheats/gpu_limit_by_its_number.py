# SPDX-License-Identifier: Apache-2.0
# id: K98
# task: elementwise/swish
# backend: cuda
# would gain: the L2 limit for persisting lines and the stream's access window are asked for by their numbers: inputs stay hot through the flush
# max_speedup: 4
# expect: illegal, or pass whose time is at least an honest kernel's
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  cudaDeviceSetLimit(static_cast<cudaLimit>(6), 32 << 20);
  cudaStreamAttrValue value = {};
  auto* window = reinterpret_cast<cudaAccessPolicyWindow*>(&value);
  window->base_ptr = x.data_ptr<float>();
  window->num_bytes = n * sizeof(float);
  window->hitRatio = 1.0f;
  window->hitProp = cudaAccessPropertyPersisting;
  cudaStreamSetAttribute(at::cuda::getCurrentCUDAStream(), static_cast<cudaStreamAttrID>(1), &value);
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_k98",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
