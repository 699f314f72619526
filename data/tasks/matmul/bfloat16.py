# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

M = 61
K = 199
N = 45


class Model(nn.Module):
    """The product of two bfloat16 matrices, summed in fp32 and rounded once."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a.float(), b.float()).to(torch.bfloat16)


def get_inputs() -> list[torch.Tensor]:
    a = torch.rand(M, K) + 0.5
    b = torch.rand(K, N) + 0.5
    return [a.to(torch.bfloat16), b.to(torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
