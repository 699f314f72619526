# SPDX-License-Identifier: Apache-2.0
"""Random instead of constant initial parameters, alike in judge and contestant.

Norm layers start with weight 1 and bias 0 and running statistics 0 and 1: a candidate that leaves
them out would be right. So while a model is constructed, filling a parameter with the constant c
gives c + 0.25 U(-1, 1), drawn by a generator of its own from (seed, shape, c, how many such fills
came before): the global generator is not touched, and every program that constructs the same
layers in the same order gets the same values, also what it derives from them in `__init__`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import init
from torch.nn.modules import batchnorm

AMPLITUDE = 0.25

_reset_running_stats: Callable[[Any], None] = batchnorm._NormBase.reset_running_stats
_parameter_new = torch.nn.Parameter.__new__


def install(seed: int) -> None:
    """Patches torch.nn for the rest of the process (or until the next install, with a new seed)."""
    fills: Counter[tuple[str, tuple[int, ...], float]] = Counter()

    def disturb(tensor: torch.Tensor, constant: float, kind: str) -> None:
        key = (kind, tuple(tensor.shape), constant)
        count = fills[key]
        fills[key] += kind != "parameter"
        with torch.no_grad():
            tensor.add_(noise(seed, key, count, tensor))

    def fill(tensor: torch.Tensor, value: float) -> torch.Tensor:
        with torch.no_grad():
            tensor.fill_(value)
        if _can_disturb(tensor):
            disturb(tensor, float(value), "fill")
        return tensor

    def reset_running_stats(self: Any) -> None:
        _reset_running_stats(self)
        if self.track_running_stats and _can_disturb(self.running_mean):
            disturb(self.running_mean, 0.0, "mean")
            disturb(self.running_var, 1.0, "variance")

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made = _parameter_new(cls, data, requires_grad)
        constant = _constant_of(made) if type(data) is torch.Tensor else None
        if constant is not None:
            disturb(made.data, constant, "parameter")
        return made

    setattr(init, "_no_grad_fill_", fill)
    setattr(init, "_no_grad_zero_", lambda tensor: fill(tensor, 0.0))
    setattr(batchnorm._NormBase, "reset_running_stats", reset_running_stats)
    setattr(torch.nn.Parameter, "__new__", parameter)


def noise(seed: int, key: object, count: int, like: torch.Tensor) -> torch.Tensor:
    """What is added to the `count`-th fill of this kind."""
    text = f"{seed} {key} {count}".encode()
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
    generator = torch.Generator().manual_seed(number)
    unit = torch.rand(like.shape, generator=generator, device="cpu", dtype=torch.float32)
    return ((2 * unit - 1) * AMPLITUDE).to(like.dtype)


def _can_disturb(tensor: object) -> bool:
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.is_floating_point()
        and tensor.device.type == "cpu"
        and tensor.numel() > 0
    )


def _constant_of(tensor: torch.Tensor) -> float | None:
    """The value of a parameter whose elements are all equal, or None.

    A parameter may be made of memory that nobody has written yet. That such memory may look
    constant by chance is harmless: nothing is counted, and its owner will overwrite it.
    """
    if not _can_disturb(tensor):
        return None
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        first = flat[0].item()
        return first if abs(first) < 1e6 and bool((flat == first).all()) else None
