# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

SAMPLES = 57
FEATURES = 181
DELTA = 0.75


class Model(nn.Module):
    """The mean Huber loss of each sample."""

    def __init__(self, delta: float) -> None:
        super().__init__()
        self.delta = delta

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        loss = F.huber_loss(prediction, target, reduction="none", delta=self.delta)
        return loss.mean(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(SAMPLES, FEATURES), torch.randn(SAMPLES, FEATURES)]


def get_init_inputs() -> list[object]:
    return [DELTA]
