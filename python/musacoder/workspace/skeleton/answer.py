# SPDX-License-Identifier: Apache-2.0
import torch
from torch.utils.cpp_extension import load

kernels = load(name="kernels", sources=["binding.cpp", "kernel.cu"])


class ModelNew(torch.nn.Module):
    """The model of ../task.py, which has the same arguments."""

    def __init__(self, *arguments):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return kernels.forward(x)
