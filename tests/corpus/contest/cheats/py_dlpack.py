# SPDX-License-Identifier: Apache-2.0
# id: K20
# task: matmul/batched_transposed
# backend: cpu
# would gain: numpy takes the tensors over as DLPack capsules and multiplies into the output's own memory
# expect: illegal, runtime, wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

import numpy

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void copy_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}

torch::Tensor copied(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  copy_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="bmm_k20",
    cpp_sources="torch::Tensor copied(torch::Tensor x);",
    cuda_sources=source,
    functions=["copied"],
)

c_float = __import__("ctypes").c_float
taken = vars(numpy)["from_dlpack"]
einsum = vars(numpy)["einsum"]


class Held:
    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **_):
        return torch._C._to_dlpack(self.tensor)

    def __dlpack_device__(self):
        return (1, 0)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty(a.shape[0], a.shape[1], b.shape[1], device=a.device)
        views = [taken(Held(t.contiguous())) for t in (a, b, out)]
        target = views[2]
        try:
            target.flags.writeable = True
        except ValueError:
            target = numpy.asarray((c_float * out.numel()).from_address(out.data_ptr())).reshape(
                out.shape
            )
        einsum("bmk,bnk->bmn", views[0], views[1], out=target)
        return out
