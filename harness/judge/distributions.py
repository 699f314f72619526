# SPDX-License-Identifier: Apache-2.0
"""Other values for a task's inputs than those that `get_inputs` draws.

Each distribution is a function of the value alone, applied to every element, so what a task builds
into its inputs (symmetry, zeros, repeated rows) stays. Integer and boolean tensors, tensors with
non-finite elements, and those that hold at most three different values (labels, masks, signs) are
left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.worker import pieces
from harness.worker.region import map_tensors, tensors_of

NATIVE = "native"
_SAMPLE = 4096


def _large(x: torch.Tensor) -> torch.Tensor:
    """Times 64, and every 64th value times 64 again: overflows an exponential in fp32."""
    return 64 * x * torch.where(_scatter(x) < 1 / 64, 64.0, 1.0)


def _heavy_tail(x: torch.Tensor) -> torch.Tensor:
    return x * torch.exp(2 * x.abs().clamp(max=4))


def _negative(x: torch.Tensor) -> torch.Tensor:
    return -x.abs()


def _integers(x: torch.Tensor) -> torch.Tensor:
    return (4 * x).round().clamp(-8, 8)


def _sparse(x: torch.Tensor) -> torch.Tensor:
    return torch.where(_scatter(x) < 0.25, x, 0.0)


def _signed(x: torch.Tensor) -> torch.Tensor:
    return 2 * torch.where(_scatter(x) < 0.5, x, -x)


def _signed_large(x: torch.Tensor) -> torch.Tensor:
    return _large(_signed(x))


def _signed_heavy_tail(x: torch.Tensor) -> torch.Tensor:
    return _heavy_tail(_signed(x))


def _scatter(x: torch.Tensor) -> torch.Tensor:
    """A number in [0, 1) that looks random, for each value."""
    return (x.abs() * 7919.0).remainder(1.0)


def _times(factor: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: factor * x


# KernelBench-Verified's inputs, beside the native ones.
SCALED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "times_3": _times(3),
    "times_0.01": _times(0.01),
    "times_-1": _times(-1),
}
TRANSFORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "large": _large,
    "heavy_tail": _heavy_tail,
    "negative": _negative,
    "integers": _integers,
    "sparse": _sparse,
    "signed": _signed,
    "signed_large": _signed_large,
    "signed_heavy_tail": _signed_heavy_tail,
    **SCALED,
}
# Equal values make the place of an extremum ambiguous.
WITH_TIES = frozenset({"integers", "sparse"})


def apply(name: str, inputs: list[Any]) -> list[Any]:
    """The inputs with their floating tensors' values changed."""
    if name == NATIVE:
        return inputs
    transform = TRANSFORMS[name]

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if not _may_change(tensor):
            return tensor
        limit = torch.finfo(tensor.dtype).max / 4
        flat = tensor.reshape(-1)
        changed = torch.empty_like(flat)
        for start, end in pieces.starts(flat):
            changed[start:end] = transform(flat[start:end].double()).clamp(-limit, limit)
        return changed.view(tensor.shape)

    changed: list[Any] = map_tensors(inputs, change)
    return changed


def can_change(inputs: list[Any]) -> bool:
    """Whether a distribution other than the native one changes any of these inputs."""
    return any(map(_may_change, tensors_of(inputs)))


def _may_change(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return False
    sample = tensor.detach().reshape(-1)[:_SAMPLE]
    few = tensor.numel() > 3 and torch.unique(sample).numel() <= 3
    return not few and pieces.is_finite(tensor)
