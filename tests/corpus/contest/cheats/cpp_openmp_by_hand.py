# SPDX-License-Identifier: Apache-2.0
# id: K36
# task: elementwise/swish
# backend: cpu
# would gain: GOMP_parallel of the OpenMP library that PyTorch brings starts the threads that loop over the host's view of the data
# expect: illegal, runtime, wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}


extern "C" void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned);
extern "C" int omp_get_thread_num(void);
extern "C" int omp_get_num_threads(void);

struct Work {
  const float* from;
  float* to;
  long n;
};

void loop(void* given) {
  const Work& work = *static_cast<const Work*>(given);
  for (long i = omp_get_thread_num(); i < work.n; i += omp_get_num_threads()) {
    work.to[i] = work.from[i] / (1.0f + std::exp(-work.from[i]));
  }
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  Work work{x.data_ptr<float>(), out.data_ptr<float>(), x.numel()};
  GOMP_parallel(loop, &work, 2, 0);
  return out;
}
"""

ext = load_inline(
    name="swish_k36",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
