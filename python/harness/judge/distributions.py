# SPDX-License-Identifier: Apache-2.0
"""Distributions of input values that differ from those of `get_inputs`.

Each distribution is a function of the value alone, applied to every element, so the structure of a
task's inputs (symmetry, zeros, repeated rows) stays; a dimension that was sorted is sorted again.
All distributions but the native one have some exact zeros, unless their name says "without zeros".
Integer and boolean tensors, tensors with non-finite elements, and those that hold at most three
different values (labels, masks, signs) are left as they are. Floats of at most 16 bits are scaled
less: their squares stay finite in fp16, in which an honest kernel may compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.worker import cuda_fused, pieces
from harness.worker.region import map_memory, map_tensors, tensors_of

NATIVE = "native"
LARGE = "large"
NONFINITE = "nonfinite"  # Native values, some of them NaN, infinite or zero.
ONLY_NAN = "nan"  # Native values, some of them NaN.
WITHOUT_ZEROS = ", without zeros"  # The end of such a distribution's name.
_SAMPLE = 4096
_SORTED_MIN = 4  # Fewer elements in a row are often sorted by chance.
_SORTED_LOOK = 1024  # Elements that are checked first.


def _large(x: torch.Tensor, factor: float = 64.0) -> torch.Tensor:
    """Times 64, and every 64th value times 64 again: overflows an exponential in fp32."""
    return factor * x * torch.where(_scatter(x) < 1 / 64, factor, 1.0)


def _heavy_tail(x: torch.Tensor, growth: float = 2.0) -> torch.Tensor:
    return x * torch.exp(growth * x.abs().clamp(max=4))


def _large_in_half(x: torch.Tensor) -> torch.Tensor:
    return _large(x, factor=8.0)


def _heavy_tail_in_half(x: torch.Tensor) -> torch.Tensor:
    return _heavy_tail(x, growth=1.0)


def _negative(x: torch.Tensor) -> torch.Tensor:
    return 0.0 - x.abs()  # Never a negative zero.


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
    """A pseudo-random number in [0, 1) for each value."""
    return (x.abs() * 7919.0).remainder(1.0)


def _zeros(x: torch.Tensor) -> torch.Tensor:
    """Zero in place of about one value of 32."""
    return torch.where(_other_scatter(x) < 1 / 32, 0.0, x)


def _nan(x: torch.Tensor) -> torch.Tensor:
    return torch.where(_other_scatter(x) < 1 / 128, torch.nan, x)


def _nonfinite(x: torch.Tensor) -> torch.Tensor:
    draw = _other_scatter(x)
    x = torch.where(draw < 4 / 128, 0.0, x)
    x = torch.where(draw < 3 / 128, torch.inf, x)
    x = torch.where(draw < 2 / 128, -torch.inf, x)
    return torch.where(draw < 1 / 128, torch.nan, x)


def _other_scatter(x: torch.Tensor) -> torch.Tensor:
    """Numbers like those of `_scatter`, and independent of them."""
    return (x.abs() * 104729.0 + 0.5).remainder(1.0)


def _times(factor: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: factor * x


# KernelBench-Verified's inputs, beside the native ones.
SCALED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "times_3": _times(3),
    "times_0.01": _times(0.01),
    "times_-1": _times(-1),
}
TRANSFORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    LARGE: _large,
    "heavy_tail": _heavy_tail,
    "negative": _negative,
    "integers": _integers,
    "sparse": _sparse,
    "signed": _signed,
    "signed_large": _signed_large,
    "signed_heavy_tail": _signed_heavy_tail,
    **SCALED,
}
# Replacements for distributions of these names, for floats of at most 16 bits.
_IN_HALF: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    LARGE: _large_in_half,
    "heavy_tail": _heavy_tail_in_half,
    "signed_large": lambda x: _large_in_half(_signed(x)),
    "signed_heavy_tail": lambda x: _heavy_tail_in_half(_signed(x)),
}
_HALF_MAX = 240.0  # Its square is finite in fp16.
_SPECIAL: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    NONFINITE: _nonfinite,
    ONLY_NAN: _nan,
}
# Equal values make the index of an extremum ambiguous.
WITH_TIES = frozenset({"integers", "sparse"})


def apply(name: str, inputs: Any) -> Any:
    """The inputs with their floating tensors' values changed."""
    if name == NATIVE:
        return inputs
    if name in _SPECIAL:
        return map_tensors(inputs, lambda tensor: _changed(tensor, _SPECIAL[name]))
    plain = name.removesuffix(WITHOUT_ZEROS)

    def changed(tensor: torch.Tensor) -> torch.Tensor:
        transform = TRANSFORMS[plain]
        if _is_half(tensor):
            transform = _IN_HALF.get(plain, transform)
        if plain != name:
            return _changed(tensor, transform)
        return _changed(tensor, lambda x: transform(_zeros(x)))

    return map_tensors(inputs, changed)


def _is_half(tensor: torch.Tensor) -> bool:
    return tensor.element_size() <= 2


def _changed(
    tensor: torch.Tensor, transform: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    if not _may_change(tensor):
        return tensor
    orders = _orders_of(tensor)
    if transform in _SPECIAL.values():
        return tensor if orders else _mapped(tensor, transform)
    limit = torch.finfo(tensor.dtype).max / 4
    if _is_half(tensor):
        limit = min(limit, max(_HALF_MAX, float(_wide(tensor).abs().max())))
    changed = _mapped(tensor, lambda x: transform(x).clamp(-limit, limit))
    for dim, descending in orders:
        values = _wide(changed).sort(dim, descending=descending).values.to(changed.dtype)
        changed = map_memory(changed, torch.clone)
        # An element that an expanded tensor repeats is written once.
        once = tuple(slice(None if step else 1) for step in changed.stride())
        changed[once] = values[once]
    return changed


def _mapped(
    tensor: torch.Tensor, transform: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    def in_pieces(flat: torch.Tensor) -> torch.Tensor:
        if (fused := cuda_fused.mapped(flat, transform)) is not None:
            return fused
        changed = torch.empty_like(flat)
        for start, end in pieces.starts(flat):
            changed[start:end] = transform(flat[start:end].double())
        return changed

    return map_memory(tensor, in_pieces)


def _orders_of(tensor: torch.Tensor) -> list[tuple[int, bool]]:
    """The dimensions along which the tensor is sorted, and whether in descending order."""
    dims = [dim for dim in range(tensor.dim()) if tensor.shape[dim] >= _SORTED_MIN]
    if not dims:
        return []
    # A single read of a device's memory: the beginning of few unsorted tensors looks sorted.
    lines = [_wide(_first_line(tensor, dim)[:_SORTED_LOOK]) for dim in dims]
    sizes = [line.numel() for line in lines]
    begins = torch.split_with_sizes(torch.cat(lines).cpu(), sizes)
    found = []
    for dim, begin in zip(dims, begins):
        for descending in (False, True):
            if _is_sorted(begin, 0, descending) and _is_sorted(tensor, dim, descending):
                found.append((dim, descending))
                break
    return found


def _first_line(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    return tensor[(0,) * dim + (slice(None),) + (0,) * (tensor.dim() - dim - 1)]


def _is_sorted(tensor: torch.Tensor, dim: int, descending: bool) -> bool:
    num = tensor.shape[dim] - 1
    first, second = _wide(tensor.narrow(dim, 0, num)), _wide(tensor.narrow(dim, 1, num))
    return bool((first >= second if descending else first <= second).all())


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """Converts 8-bit floats, which PyTorch cannot compare, to fp32."""
    return tensor.float() if tensor.element_size() == 1 else tensor


def can_change(inputs: Any) -> bool:
    """True if a distribution other than the native one changes any of these inputs."""
    return any(map(_may_change, tensors_of(inputs)))


def _may_change(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return False
    sample = tensor.detach().reshape(-1)[:_SAMPLE].double()
    few = tensor.numel() > 3 and torch.unique(sample).numel() <= 3
    return not few and pieces.is_finite(tensor)
