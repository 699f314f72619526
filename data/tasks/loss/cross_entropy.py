# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

BATCH = 41
CLASSES = 237


class Model(nn.Module):
    """Mean cross entropy of logits against class numbers."""

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, target)


def get_inputs() -> list[torch.Tensor]:
    return [40.0 * torch.randn(BATCH, CLASSES), torch.randint(0, CLASSES, (BATCH,))]


def get_init_inputs() -> list[object]:
    return []
