# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

VOCABULARY = 211
FEATURES = 75
BATCH = 9
TOKENS = 37


class Model(nn.Module):
    """Looks up a learned vector for each token."""

    def __init__(self, vocabulary: int, features: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, features)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.table(tokens)
        return y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, VOCABULARY, (BATCH, TOKENS))]


def get_init_inputs() -> list[object]:
    return [VOCABULARY, FEATURES]
