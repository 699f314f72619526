# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

BATCH = 6
CHANNELS = 11
HEIGHT = 23
WIDTH = 27


class Model(nn.Module):
    """Batch normalisation as at inference: with the running statistics."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = self.norm
        return F.batch_norm(
            x, n.running_mean, n.running_var, n.weight, n.bias, training=False, eps=n.eps
        )


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [CHANNELS]
