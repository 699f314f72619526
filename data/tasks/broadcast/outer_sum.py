# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 203
COLS = 301


class Model(nn.Module):
    """The table of all sums of one element of `a` and one of `b`."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a[:, None] + b[None, :]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS), torch.randn(COLS)]


def get_init_inputs() -> list[object]:
    return []
