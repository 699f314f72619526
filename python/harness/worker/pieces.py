# SPDX-License-Identifier: Apache-2.0
"""Large tensors a piece at a time, so that what is computed of them needs little memory.

A device is asked for results once, after the last piece: processes that share a device take turns
on it, and each question waits for a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

# Elements. The CPU's fit into its caches; a device needs many to be busy.
SIZE_ON_CPU = 1 << 20
SIZE_ON_DEVICE = 1 << 24


def starts(tensor: torch.Tensor) -> Iterator[tuple[int, int]]:
    """Where each piece of a flat tensor begins and ends."""
    size = SIZE_ON_CPU if tensor.is_cpu else SIZE_ON_DEVICE
    for start in range(0, tensor.numel(), size):
        yield start, min(start + size, tensor.numel())


def values(scalars: Iterable[torch.Tensor]) -> list[float]:
    """Numbers that were computed one for each piece; one question to the device."""
    found = [scalar.double() for scalar in scalars]
    numbers: list[float] = torch.stack(found).tolist() if found else []
    return numbers


def is_finite(tensor: torch.Tensor) -> bool:
    flat = tensor.detach().reshape(-1)
    if flat.element_size() == 1:  # PyTorch knows little of the 8-bit floats.
        flat = flat.float()
    return all(values(flat[start:end].isfinite().all() for start, end in starts(flat)))
