# SPDX-License-Identifier: Apache-2.0
# A template of the source whose marks are replaced, also by words of MUSA.
import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load_inline

TEMPLATE = """
#include <torch/extension.h>
#include <@RUNTIME@>
__global__ void leaky_relu_kernel(@T@* x, int n, @T@ slope) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < 0) x[i] *= slope;
}
void leaky_relu_(torch::Tensor x, double slope) {
  TORCH_CHECK(x.is_contiguous() && x.device().@IS_MUSA@());
  const int n = x.numel();
  @STREAM_T@ stream = at::@BACKEND@::@GET_STREAM@();
  leaky_relu_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x.data_ptr<@T@>(), n, (@T@)slope);
  @CHECK@
}
"""
WORDS = {
    "@T@": "float",
    "@RUNTIME@": "torch_musa/csrc/aten/musa/MUSAContext.h",
    "@IS_MUSA@": "is_privateuseone",
    "@STREAM_T@": "musaStream_t",
    "@BACKEND@": "musa",
    "@GET_STREAM@": "getCurrentMUSAStream",
    "@CHECK@": "C10_MUSA_CHECK(musaPeekAtLastError());",
}
source = TEMPLATE.replace("<@RUNTIME@>", '"@RUNTIME@"\n#include "@EXCEPTION@"')
source = source.replace("@EXCEPTION@", "torch_musa/csrc/core/MUSAException.h")
for mark, word in WORDS.items():
    source = source.replace(mark, word)

ext = load_inline(
    name="leaky_relu_template",
    cpp_sources="void leaky_relu_(torch::Tensor x, double slope);",
    musa_sources=source,
    functions="leaky_relu_",
)


class ModelNew(nn.Module):
    def __init__(self, negative_slope: float):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ext.leaky_relu_(x, self.negative_slope)
        return x
