# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 31
FEATURES = 2051


class Model(nn.Module):
    """Swish: every element times its own sigmoid."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs() -> list[object]:
    return []
