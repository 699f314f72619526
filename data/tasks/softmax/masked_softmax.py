# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 7
QUERIES = 15
KEYS = 83


class Model(nn.Module):
    """Scaled softmax over the keys that the mask keeps; the others get zero."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, scores: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        scaled = scores * self.scale
        return torch.softmax(scaled.masked_fill(~keep[:, None, :], float("-inf")), dim=-1)


def get_inputs() -> list[torch.Tensor]:
    lengths = torch.randint(1, KEYS + 1, (BATCH, 1))
    keep = torch.arange(KEYS)[None, :] < lengths
    return [4.0 * torch.randn(BATCH, QUERIES, KEYS), keep]


def get_init_inputs() -> list[object]:
    return [0.125]
