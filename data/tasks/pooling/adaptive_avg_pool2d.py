# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

require_general = True

BATCH = 4
CHANNELS = 6
HEIGHT = 31
WIDTH = 26
OUT_HEIGHT = 7
OUT_WIDTH = 5


class Model(nn.Module):
    """Average pooling to a given size, whatever the size of the input."""

    def __init__(self, out_height: int, out_width: int) -> None:
        super().__init__()
        self.out_height = out_height
        self.out_width = out_width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.adaptive_avg_pool2d(x, (self.out_height, self.out_width))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs() -> list[object]:
    return [OUT_HEIGHT, OUT_WIDTH]
