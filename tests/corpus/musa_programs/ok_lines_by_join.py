# SPDX-License-Identifier: Apache-2.0
# Lines in a list, joined, and adjacent literals; few of them look like C++ by themselves.
import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils import musa_extension

lines = [
    "#include <torch/extension.h>",
    "#include \"torch_musa/csrc/aten/musa/MUSAContext.h\"",
    "__global__ void embed(const long* tokens, const float* table, float* out, int features) {",
    "  const long token = tokens[blockIdx.x];",
    "  for (int f = threadIdx.x; f < features; f += blockDim.x)",
    "    out[(long)blockIdx.x * features + f] = table[token * features + f];",
    "}",
]
body = (
    "torch::Tensor embedding(torch::Tensor tokens, torch::Tensor table) {\n"
    "  auto sizes = tokens.sizes().vec();\n"
    "  sizes.push_back(table.size(1));\n"
    "  auto out = torch::empty(sizes, table.options());\n"
    "  musaStream_t s = "
    "at::musa::getCurrentMUSAStream();\n"
    "  if (tokens.numel() > 0)\n"
    "    embed<<<tokens.numel(), 64, 0, s>>>(tokens.data_ptr<int64_t>(),\n"
    "        table.data_ptr<float>(), out.data_ptr<float>(), table.size(1));\n"
    "  return out;\n"
    "}\n"
)
lines.append(body)

ext = musa_extension.load_inline(
    name="embedding_lines",
    cpp_sources="torch::Tensor embedding(torch::Tensor tokens, torch::Tensor table);",
    musa_sources="\n".join(lines),
    functions=["embedding"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary: int, features: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, features)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return ext.embedding(tokens.contiguous(), self.table.weight)
