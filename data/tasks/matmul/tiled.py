# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

M = 97
K = 130
N = 75


class Model(nn.Module):
    """The product of two matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs() -> list[object]:
    return []
