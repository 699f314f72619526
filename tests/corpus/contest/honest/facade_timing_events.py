# SPDX-License-Identifier: Apache-2.0
# id: H19
# task: elementwise/swish
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""CUDA events, streams from the pool and a stream guard."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/CUDAGuard.h>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream();
  c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, x.get_device());
  cudaEvent_t ready, done;
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  C10_CUDA_CHECK(cudaEventRecord(ready, current.stream()));
  {
    c10::cuda::CUDAStreamGuard guard(side);
    C10_CUDA_CHECK(cudaStreamWaitEvent(side.stream(), ready, 0));
    swish_kernel<<<(n + 255) / 256, 256, 0, side>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    C10_CUDA_CHECK(cudaEventRecord(done, side.stream()));
  }
  C10_CUDA_CHECK(cudaStreamWaitEvent(current.stream(), done, 0));
  C10_CUDA_CHECK(cudaEventDestroy(ready));
  C10_CUDA_CHECK(cudaEventDestroy(done));
  return out;
}
"""

ext = load_inline(
    name="swish_h19",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
