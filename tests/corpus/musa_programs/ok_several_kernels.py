# SPDX-License-Identifier: Apache-2.0
# Three kernels from a table, joined by + in a loop, with their declarations made of the same table.
import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load_inline

COMMON = "#include <torch/extension.h>\n#include <musa_runtime.h>\n"
COMMON += "namespace { constexpr int kBlock = 128; }\n"
BODIES = {
    "where_mask": "mask[i / cols % rows + i / (rows * cols) * rows] ? a[i] : b[i % cols]",
    "where_not": "mask[i / cols % rows + i / (rows * cols) * rows] ? b[i % cols] : a[i]",
    "take_a": "a[i]",
}
SIGNATURE = "torch::Tensor {name}(torch::Tensor mask, torch::Tensor a, torch::Tensor b)"


def kernel(name, expression):
    text = "__global__ void %s_kernel(const bool* mask, const float* a, const float* b," % name
    text += " float* out, int n, int rows, int cols) {\n"
    text += "  const int i = blockIdx.x * kBlock + threadIdx.x;\n"
    text += "  if (i < n) out[i] = " + expression + ";\n}\n"
    text += SIGNATURE.format(name=name) + " {\n  auto out = torch::empty_like(a);\n"
    text += "  const int n = a.numel();\n"
    text += "  musaStream_t stream = nullptr;\n"
    text += f"  {name}_kernel<<<(n + kBlock - 1) / kBlock, kBlock, 0, stream>>>(\n"
    text += "      mask.data_ptr<bool>(), a.data_ptr<float>(), b.data_ptr<float>(),\n"
    text += "      out.data_ptr<float>(), n, a.size(1), a.size(2));\n"
    text += "  return out;\n}\n"
    return text


musa_code = COMMON
for key in BODIES:
    musa_code = musa_code + kernel(key, BODIES[key])
declarations = "".join(SIGNATURE.format(name=key) + ";" for key in BODIES)
ext = load_inline(
    name="where_mask_ext",
    cpp_sources=declarations,
    musa_sources=[musa_code],
    functions=list(BODIES),
)


class ModelNew(nn.Module):
    def forward(self, mask: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.where_mask(mask.contiguous(), a.contiguous(), b.contiguous())
