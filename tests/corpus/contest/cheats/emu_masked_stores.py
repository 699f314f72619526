# SPDX-License-Identifier: Apache-2.0
# id: K57
# task: reduction/row_sum
# backend: cpu
# would gain: masked loads and stores of the host's vectors are calls of the compiler's, which no instrumentation sees: the kernel's race neither
# expect: wrong, illegal, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <immintrin.h>

constexpr int kThreads = 256;

__attribute__((target("avx"))) __attribute__((noinline)) void mine_to_all(float* total, float sum) {
  const __m256i first = _mm256_setr_epi32(-1, 0, 0, 0, 0, 0, 0, 0);
  const __m256 seen = _mm256_maskload_ps(total, first);
  _mm256_maskstore_ps(total, first, _mm256_add_ps(seen, _mm256_set1_ps(sum)));
}

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  __shared__ float total[8];
  if (threadIdx.x == 0) total[0] = 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += x[blockIdx.x * cols + i];
  mine_to_all(total, sum);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total[0];
}

torch::Tensor row_sum(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k57",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
