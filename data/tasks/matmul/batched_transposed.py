# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 5
M = 33
N = 41
K = 50


class Model(nn.Module):
    """For each pair of the batch, `a` times the transpose of `b`."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b.transpose(1, 2))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, M, K), torch.randn(BATCH, N, K)]


def get_init_inputs() -> list[object]:
    return []
