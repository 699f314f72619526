# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

BATCH = 19
CHANNELS = 23
LENGTH = 77


class Model(nn.Module):
    """Hard swish on half-precision input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardswish(x)


def get_inputs() -> list[torch.Tensor]:
    return [(2.0 * torch.randn(BATCH, CHANNELS, LENGTH)).to(torch.float16)]


def get_init_inputs() -> list[object]:
    return []
