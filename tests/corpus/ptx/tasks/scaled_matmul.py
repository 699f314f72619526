# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 40
INNER = 96
COLS = 72


class Model(nn.Module):
    """A product of 8-bit floats of two kinds, with a scale for each."""

    def forward(
        self, a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor
    ) -> torch.Tensor:
        return (a.float() @ b.float()) * (a_scale * b_scale)


def get_inputs() -> list[torch.Tensor]:
    a = torch.randn(ROWS, INNER).to(torch.float8_e4m3fn)
    b = torch.randn(INNER, COLS).to(torch.float8_e5m2)
    return [a, b, torch.rand(ROWS, 1) + 0.5, torch.rand(1, COLS) + 0.5]


def get_init_inputs() -> list[object]:
    return []
