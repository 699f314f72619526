# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

DEPTH = 7
HEIGHT = 53
WIDTH = 61


class Model(nn.Module):
    """Compares two tensors element by element; the answer is boolean."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a > b


def get_inputs() -> list[torch.Tensor]:
    # A quarter of the pairs are equal, so that > and >= differ.
    a = torch.randn(DEPTH, HEIGHT, WIDTH)
    b = torch.where(torch.rand(DEPTH, HEIGHT, WIDTH) < 0.25, a, torch.randn(DEPTH, HEIGHT, WIDTH))
    return [a, b]


def get_init_inputs() -> list[object]:
    return []
