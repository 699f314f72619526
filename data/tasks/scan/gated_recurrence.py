# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

require_general = True

BATCH = 5
STEPS = 59
FEATURES = 43


class Model(nn.Module):
    """A linear recurrence: the state fades by a gate and takes in the rest of the input."""

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        keep = torch.sigmoid(gate)
        state = torch.zeros_like(x[:, 0])
        states = []
        for step in range(x.shape[1]):
            state = keep[:, step] * state + (1.0 - keep[:, step]) * x[:, step]
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, STEPS, FEATURES), torch.randn(BATCH, STEPS, FEATURES)]


def get_init_inputs() -> list[object]:
    return []
