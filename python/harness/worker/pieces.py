# SPDX-License-Identifier: Apache-2.0
"""Processes large tensors in pieces, so that intermediate results need little memory.

Results are read from a device once, after the last piece: processes that share a device take turns,
and each read waits for a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

# The elements of a piece: few enough for a CPU's caches, many enough to occupy a device.
SIZE_ON_CPU = 1 << 20
SIZE_ON_DEVICE = 1 << 24


def starts(tensor: torch.Tensor) -> Iterator[tuple[int, int]]:
    """The begin and end of each piece of a flat tensor."""
    size = SIZE_ON_CPU if tensor.is_cpu else SIZE_ON_DEVICE
    for start in range(0, tensor.numel(), size):
        yield start, min(start + size, tensor.numel())


def values(scalars: Iterable[torch.Tensor]) -> list[float]:
    """The numbers that were computed, one for each piece, by a single read from the device."""
    found = [scalar.double() for scalar in scalars]
    numbers: list[float] = torch.stack(found).tolist() if found else []
    return numbers


def is_finite(tensor: torch.Tensor) -> bool:
    flat = tensor.detach().reshape(-1)
    if flat.element_size() == 1:  # PyTorch has few operators for 8-bit floats.
        flat = flat.float()
    return all(values(flat[start:end].isfinite().all() for start, end in starts(flat)))
