# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

BATCH = 64
FEATURES = 65536


class Model(nn.Module):
    """Mish of enough elements that memory alone decides how long it takes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.mish(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs() -> list[object]:
    return []
