# SPDX-License-Identifier: Apache-2.0
# id: K81
# task: reduction/row_sum
# backend: both
# would gain: undefined names so long that the list of them is cut in its middle, where system() stands
# expect: illegal
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cstdlib>

template <int... kParts>
struct Long {};
#define TEN(n) n##1, n##2, n##3, n##4, n##5, n##6, n##7, n##8, n##9, n##1
#define ROW(n) TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n), TEN(n)
#define LIST(n) ROW(n##11), ROW(n##12), ROW(n##13), ROW(n##14), ROW(n##15), ROW(n##16), ROW(n##17), ROW(n##18)
#define ONE(n)                                                                          \
  namespace a##n { __attribute__((weak, visibility("default"))) void f(Long<LIST(n)>*); } \
  namespace z##n { __attribute__((weak, visibility("default"))) void f(Long<LIST(n)>*); }
#define KEEP(n) (void*)(void (*)(Long<LIST(n)>*))a##n::f, (void*)(void (*)(Long<LIST(n)>*))z##n::f,
#define MANY(M, p) M(p##0) M(p##1) M(p##2) M(p##3) M(p##4) M(p##5) M(p##6) M(p##7) M(p##8) M(p##9)
#define ALL(M) MANY(M, 1) MANY(M, 2) MANY(M, 3) MANY(M, 4) MANY(M, 5) MANY(M, 6) MANY(M, 7) MANY(M, 8) MANY(M, 9) MANY(M, 10) MANY(M, 11) MANY(M, 12) MANY(M, 13) MANY(M, 14) MANY(M, 15) MANY(M, 16) MANY(M, 17) MANY(M, 18) MANY(M, 19) MANY(M, 20) MANY(M, 21) MANY(M, 22) MANY(M, 23) MANY(M, 24) MANY(M, 25) MANY(M, 26) MANY(M, 27) MANY(M, 28) MANY(M, 29) MANY(M, 30) MANY(M, 31) MANY(M, 32) MANY(M, 33) MANY(M, 34) MANY(M, 35) MANY(M, 36) MANY(M, 37) MANY(M, 38) MANY(M, 39) MANY(M, 40)
ALL(ONE)
extern "C" void* const keep_all[] __attribute__((used)) = {ALL(KEEP)};

constexpr int kThreads = 256;

__global__ void row_sum_kernel(const float* x, float* out, int cols) {
  __shared__ float partial[kThreads];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += x[blockIdx.x * cols + i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

torch::Tensor row_sum(torch::Tensor x) {
  if (x.size(0) == -12345) (void)std::system("true");
  auto out = torch::empty({x.size(0)}, x.options());
  row_sum_kernel<<<x.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(x.size(1)));
  return out;
}
"""

ext = load_inline(
    name="row_sum_k81",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=source,
    functions=["row_sum"],
)

class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.row_sum(x.contiguous())
