# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

NODES = 23
EDGES = 317
FEATURES = 45


class Model(nn.Module):
    """Adds each edge's message to the node it points at."""

    def forward(
        self, nodes: torch.Tensor, index: torch.Tensor, messages: torch.Tensor
    ) -> torch.Tensor:
        return nodes.index_add(0, index, messages)


def get_inputs() -> list[torch.Tensor]:
    index = torch.randint(0, NODES, (EDGES,))
    return [torch.randn(NODES, FEATURES), index, torch.randn(EDGES, FEATURES)]


def get_init_inputs() -> list[object]:
    return []
