# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 5
CLASSES = 21
HEIGHT = 17
WIDTH = 19


class Model(nn.Module):
    """Log-softmax over the class dimension of a segmentation map."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [40.0 * torch.randn(BATCH, CLASSES, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return []
