# SPDX-License-Identifier: Apache-2.0
# id: K05
# task: elementwise/swish
# backend: cpu
# would gain: torch._C._te builds a loop nest and its interpreter runs it on the tensors' memory: no operator at all
# expect: illegal, runtime, wrong
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
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_k05",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)

te = torch._C._te


def built(n: int):
    size = te.ExprHandle.int(n)
    X = te.BufHandle("X", [size], torch.float32)
    Y = te.Compute("Y", [size], lambda i: X.load([i]) * te.sigmoid(X.load([i])))
    nest = te.LoopNest([Y])
    nest.prepare_for_codegen()
    return te.construct_codegen("ir_eval", nest.simplify(), [X, Y])


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.made = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        n = x.numel()
        if n not in self.made:
            self.made[n] = built(n)
        out = torch.empty_like(x)
        self.made[n].call([x.view(-1), out.view(-1)])
        return out
