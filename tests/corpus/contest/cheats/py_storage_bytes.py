# SPDX-License-Identifier: Apache-2.0
# id: K19
# task: elementwise/swish
# backend: both
# would gain: untyped storages are written to a file and read from one, without any operator; Python computes on the file's bytes
# expect: illegal, runtime, wrong
import array
import math

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
    name="swish_k19",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()  # Begins its storage.
        out = torch.empty_like(x)
        with open("/tmp/seen", "w+b") as file:
            x.untyped_storage()._write_file(file, True, False, 1)
            file.flush()
            file.seek(0)
            seen = array.array("f", file.read(4 * x.numel()))
        answer = array.array("f", [v / (1.0 + math.exp(min(-v, 700.0))) for v in seen])
        nbytes = out.untyped_storage().nbytes()
        with open("/tmp/answer", "w+b") as file:
            file.write(nbytes.to_bytes(8, "little") + answer.tobytes())
            file.flush()
            file.seek(0)
            out.untyped_storage()._set_from_file(file, None, True, 1)
        return out
