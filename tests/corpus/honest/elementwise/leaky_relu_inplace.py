# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

__global__ void leaky_relu_kernel(float* x, float slope, long long n) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i >= n) {
    return;
  }
  const float v = x[i];
  x[i] = v > 0.0f ? v : v * slope;
}

void leaky_relu_(torch::Tensor x, double slope) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  const long long n = x.numel();
  const int threads = 256;
  leaky_relu_kernel<<<(n + threads - 1) / threads, threads, 0,
                      at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(),
                                                          static_cast<float>(slope), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

leaky_relu = load_inline(
    name="leaky_relu_inplace_ext",
    cpp_sources="void leaky_relu_(torch::Tensor x, double slope);",
    cuda_sources=cuda_source,
    functions={"leaky_relu_": "Leaky ReLU in place"},
)


class ModelNew(nn.Module):
    """Overwrites its input, as the reference does."""

    def __init__(self, negative_slope: float) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        leaky_relu.leaky_relu_(x, self.negative_slope)
        return x
