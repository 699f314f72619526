# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

ROWS = 21
COLS = 93


class Model(nn.Module):
    """Sorts each row, largest first, and says where each element came from.

    Equal elements keep their order.
    """

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = torch.sort(x, dim=1, descending=True, stable=True)
        return values, indices


def get_inputs() -> list[torch.Tensor]:
    # Few distinct values, so that ties are common.
    return [torch.floor(80.0 * torch.rand(ROWS, COLS)) - 40.0]


def get_init_inputs() -> list[object]:
    return []
