# SPDX-License-Identifier: Apache-2.0
"""Random instead of constant initial parameters, alike in judge and candidate process.

Norm layers start with weight 1, bias 0 and running statistics 0 and 1, so a candidate that omits
them would be right. So while a model is constructed, a parameter that is filled with a constant c,
or made from a tensor whose elements are all c, becomes c + 0.25 U(-1, 1). A separate generator
draws the noise from (seed, shape, c, number of equal constants before), without changing the global
generator. So every program that makes the same constants in the same order gets the same values, in
layers or in its own parameters, and `__init__` sees them. In a candidate only constants that the
reference made are disturbed: a weight of 1 that the task does not have is unchanged.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn import init
from torch.nn.modules import batchnorm

# A context, set by a process that records its candidate's operators, in which none are recorded.
unnoticed: Callable[[], AbstractContextManager[None]] = nullcontext

AMPLITUDE = 0.25
_SAMPLE = 64


class Constants:
    """The constants to disturb: all, which are then recorded, or only recorded ones."""

    def __init__(self, noted: Iterable[str] | None = None) -> None:
        self.noted = list(noted or ())
        self._only = None if noted is None else frozenset(self.noted)

    def takes(self, name: str) -> bool:
        if self._only is not None:
            return name in self._only
        self.noted.append(name)
        return True


@contextmanager
def constants_disturbed(seed: int, constants: Constants) -> Iterator[None]:
    """A context for constructing a model; later copies of the model are equal to it."""
    norms, parameters = batchnorm._NormBase, torch.nn.Parameter
    originals = (
        (init, "_no_grad_fill_", init._no_grad_fill_),
        (init, "_no_grad_zero_", init._no_grad_zero_),
        (norms, "reset_running_stats", norms.reset_running_stats),
        (parameters, "__new__", parameters.__new__),
    )
    patches = _patches(seed, constants, norms.reset_running_stats, parameters.__new__)
    # Uninitialised memory that is constant by chance would count, so it is filled with NaN.
    was_deterministic = torch.are_deterministic_algorithms_enabled()
    was_warning = torch.is_deterministic_algorithms_warn_only_enabled()
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    try:
        for (owner, name, _), patch in zip(originals, patches, strict=True):
            setattr(owner, name, patch)
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
        torch._C._set_deterministic_algorithms(was_deterministic, warn_only=was_warning)


def _patches(
    seed: int,
    constants: Constants,
    reset_stats: Callable[[Any], None],
    parameter_new: Callable[..., Any],
) -> tuple[Callable[..., Any], ...]:
    counts: Counter[tuple[str, tuple[int, ...], float]] = Counter()
    single: set[float] = set()  # Values of parameters of one element, which stay as they are.

    def disturb(tensor: torch.Tensor, kind: str = "constant") -> None:
        with torch.no_grad(), torch._C.DisableTorchFunction(), unnoticed():
            constant = _constant_of(tensor)
            if constant is None or (tensor.numel() == 1 and constant in single):
                return
            # A bias of [8, 1, 1] gets what one of [8] gets.
            key = (kind, tuple(tensor.squeeze().shape), constant)
            name = f"{key} {counts[key]}"
            if not constants.takes(name):
                return
            tensor.copy_(_noise(seed, name, tensor) + constant)
            counts[key] += 1
            if tensor.numel() == 1:
                single.add(float(tensor.item()))

    def fill(tensor: torch.Tensor, value: float) -> torch.Tensor:
        with torch.no_grad():
            tensor.fill_(value)
        disturb(tensor)
        return tensor

    def reset_running_stats(self: Any) -> None:
        reset_stats(self)
        if self.track_running_stats:
            disturb(self.running_mean, "mean")
            disturb(self.running_var, "variance")

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made = parameter_new(cls, data, requires_grad)
        if type(data) is torch.Tensor:
            disturb(made.data)
        return made

    return fill, lambda tensor: fill(tensor, 0.0), reset_running_stats, parameter


def _noise(seed: int, name: str, like: torch.Tensor) -> torch.Tensor:
    """The noise for the constant with this key."""
    text = f"{seed} {name}".encode()
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
    generator = torch.Generator("cpu").manual_seed(number)
    unit = torch.rand(like.shape, generator=generator, device="cpu", dtype=torch.float32)
    return ((2 * unit - 1) * AMPLITUDE).to(like.dtype)


def _constant_of(tensor: object) -> float | None:
    """The value of a floating tensor whose elements are all equal, on whatever device; or None."""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
        return None
    if tensor.device.type == "meta" or tensor.numel() == 0:
        return None
    flat = tensor.detach().reshape(-1)
    first = float(flat[0].item())
    for part in (flat[:_SAMPLE], flat):
        if not abs(first) < 1e6 or not bool((part.cpu() == first).all()):
            return None
    return first
