# SPDX-License-Identifier: Apache-2.0
# Pieces of C++ that are joined outside of the call; most have none of C++'s usual marks.
import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load_inline

HEADERS = """
#include <torch/extension.h>
#include <musa_runtime.h>
"""
STREAM_HEADER = '#include "torch_musa/csrc/aten/musa/MUSAContext.h"\n'
HELPERS = """
static inline musaStream_t stream_now() { return at::musa::getCurrentMUSAStream(); }
static inline void check(musaError_t e) { TORCH_CHECK(e == musaSuccess, musaGetErrorString(e)); }
"""
SIGMOID = "inline __host__ __device__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }\n"
KERNEL = """
__global__ void swish_kernel(const float* x, float* y, long n) {
  const long step = gridDim.x * (long)blockDim.x;
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += step)
    y[i] = x[i] * sigmoid(x[i]);
}
"""
LAUNCHER_HEAD = "torch::Tensor swish(torch::Tensor x) {\n"
LAUNCHER_BODY = """
  auto y = torch::empty_like(x);
  const long n = x.numel();
  if (n == 0) return y;
  swish_kernel<<<(n + 255) / 256, 256, 0, stream_now()>>>(x.data_ptr<float>(),
                                                          y.data_ptr<float>(), n);
  check(musaGetLastError());
  return y;
"""
SOURCE = HEADERS + STREAM_HEADER + HELPERS + SIGMOID
SOURCE += KERNEL
SOURCE += LAUNCHER_HEAD + LAUNCHER_BODY + "}\n"

swish_ext = load_inline(
    name="swish_joined",
    cpp_sources=LAUNCHER_HEAD.rstrip(" {\n") + ";",
    musa_sources=SOURCE,
    functions=["swish"],
    extra_musa_cflags=["-O3", "--offload-arch=mp_31"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return swish_ext.swish(x.contiguous())
