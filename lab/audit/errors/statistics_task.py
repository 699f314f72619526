# SPDX-License-Identifier: Apache-2.0
"""Batch norm over two rows, which amplifies rounding: the task."""

import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()) for _ in range(6)]
        self.layers = nn.Sequential(*[layer for three in layers for layer in three])

    def forward(self, x):
        return self.layers(x)

def get_inputs():
    return [torch.randn(2, 64)]

def get_init_inputs():
    return []
