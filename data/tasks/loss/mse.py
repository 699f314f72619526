# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

BATCH = 47
FEATURES = 419


class Model(nn.Module):
    """Mean squared error of a prediction."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(prediction, target)


def get_inputs() -> list[torch.Tensor]:
    # The error's size changes from draw to draw, so no constant is right.
    scale = 0.5 + 4.0 * torch.rand(1)
    return [scale * torch.randn(BATCH, FEATURES), torch.randn(BATCH, FEATURES)]


def get_init_inputs() -> list[object]:
    return []
