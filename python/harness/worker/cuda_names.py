# SPDX-License-Identifier: Apache-2.0
"""The names that differ between CUDA and MUSA for the harness, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch


@dataclass(frozen=True)
class Names:
    """The names of one platform. `device` is both PyTorch's type and its module's name."""

    device: str
    dispatch_key: str  # The key of the device's operators.
    driver: str  # The driver's library; its functions begin with `prefix`.
    prefix: str
    stream: str  # A stream's member that holds its native handle.
    graph: str  # The class of the module that records work.

    @property
    def torch_device(self) -> torch.device:
        return torch.device(self.device, 0)

    @property
    def module(self) -> ModuleType:
        found: ModuleType = getattr(torch, self.device)
        return found


CUDA = Names(
    device="cuda",
    dispatch_key="CUDA",
    driver="libcuda.so.1",
    prefix="cu",
    stream="cuda_stream",
    graph="CUDAGraph",
)
# No name below was tried on MUSA hardware (docs/musa.md).
MUSA = Names(
    device="musa",
    dispatch_key="PrivateUse1",
    driver="libmusa.so",
    prefix="mu",
    stream="musa_stream",
    graph="MUSAGraph",
)
