# SPDX-License-Identifier: Apache-2.0
"""Describes in a sentence which elements of an output are wrong: their positions and common values.

These facts come from the two tensors and do not explain the cause; `diagnosis.py` looks for that
first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from harness.judge.compare import Comparer
from harness.judge.reference import Outcome
from harness.worker.region import tensors_of

ELEMENTS_MAX = 1 << 24
WRONG_MIN = 2  # Fewer wrong elements make no pattern.
FACTS_MAX = 2


def of_degenerate(expected: Any, got: Any) -> str:
    """A sentence about outputs that are only zeros or only NaN."""
    for name, one, other in _pairs(expected, got):
        if other.numel() < WRONG_MIN or other.is_complex() or _is_uniform(one):
            continue
        if other.is_floating_point() and bool(other.isnan().all()):
            return f"All elements of {name} are NaN: they are not written, or made of NaN."
        if _is_uniform(other) and other.reshape(-1)[0].item() == 0:
            return f"All elements of {name} are 0: they are not written, or all is cut off."
    return ""


def of_elements(outcome: Outcome, got: Any, comparer: Comparer) -> str:
    """Up to FACTS_MAX facts on the first output that is wrong."""
    for name, expected, mine in _pairs(outcome.outputs, got):
        if not WRONG_MIN <= expected.numel() <= ELEMENTS_MAX or expected.is_complex():
            continue
        wrong = _wrong(expected, mine, comparer)
        if bool(wrong.any()):
            facts = itertools.islice(_facts(mine, wrong), FACTS_MAX)
            return " ".join(_capital(fact.replace("@", name)) for fact in facts)
    return ""


def _pairs(expected: Any, got: Any) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    ones, others = tensors_of(expected), tensors_of(got)
    for number, (one, other) in enumerate(zip(ones, others)):
        name = "the output" if len(ones) == 1 else f"output {number}"
        yield name, one, other


def _is_uniform(tensor: torch.Tensor) -> bool:
    flat = tensor.reshape(-1)
    return flat.numel() > 0 and bool((flat == flat[0]).all())


def _number(value: object) -> str:
    return f"{value + 0.0:.4g}" if isinstance(value, float) else str(value)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _wrong(expected: torch.Tensor, got: torch.Tensor, comparer: Comparer) -> torch.Tensor:
    if not expected.is_floating_point():
        return expected != got
    tolerance = comparer.tolerances.get(str(expected.dtype).removeprefix("torch."), 1e-2)
    exact, mine = expected.double(), got.double()
    finite = exact.isfinite()
    scale = torch.where(finite, exact, 0.0)
    allowed = tolerance * scale.abs().clamp(min=float(scale.square().mean().sqrt()))
    same = (exact == mine) | (exact.isnan() & mine.isnan())
    return torch.where(finite, ~((mine - exact).abs() <= allowed), ~same)


def _facts(got: torch.Tensor, wrong: torch.Tensor) -> Iterator[str]:
    """The facts, the most informative first; "@" stands for the output's name."""
    if _is_uniform(got) and got.numel() > 1:
        yield f"All elements of @ are {_number(got.reshape(-1)[0].item())}."
        return
    yield from _values(got, wrong)
    if int(wrong.sum()) < wrong.numel():
        yield from _places(wrong)


# ---- Some elements ------------------------------------------------------------------------------


def _values(got: torch.Tensor, wrong: torch.Tensor) -> Iterator[str]:
    """The values of the wrong elements."""
    values = got[wrong]
    if values.is_floating_point():
        num_nan = int(values.isnan().sum())
        if num_nan == values.numel():
            yield "All wrong elements of @ are NaN: they are not written, or made of NaN."
            return
        if num_nan:
            yield f"{num_nan} of the {values.numel()} wrong elements of @ are NaN."
            return
        if bool(values.isinf().any()):
            yield f"{int(values.isinf().sum())} of the wrong elements of @ are infinite."
            return
    if values.numel() >= WRONG_MIN and _is_uniform(values):
        yield f"All wrong elements of @ are {_number(values[0].item())}."


def _places(wrong: torch.Tensor) -> Iterator[str]:
    """The positions of the wrong elements: along one axis, or in flat order."""
    for axis in range(wrong.dim()):
        size = wrong.shape[axis]
        others = [dim for dim in range(wrong.dim()) if dim != axis]
        hit = wrong.any(dim=tuple(others)) if others else wrong
        if size > 1 and not bool(hit.all()) and wrong.dim() > 1:
            words = _set_words(hit.nonzero().reshape(-1).tolist(), size)
            if words:
                yield f"Only elements of @ with {words} along axis {axis} are wrong."
                return
    flat = wrong.reshape(-1)
    words = _set_words(flat.nonzero().reshape(-1).tolist(), flat.numel())
    if words:
        yield f"Only elements of @ with {words} in flat order are wrong."


def _set_words(places: list[int], size: int) -> str:
    """ "index 0", "the last index (40)", "indices from 32 on"; "" for scattered ones."""
    first, last = places[0], places[-1]
    if len(places) == 1:
        return f"the last index ({last})" if last == size - 1 else f"index {first}"
    is_dense = len(places) >= 0.9 * (last - first + 1)
    if is_dense and last == size - 1 and first > 0:
        return f"indices from {first} on, of {size},"
    if is_dense and first == 0 and last < 0.9 * size:
        return f"indices below {last + 1}, of {size},"
    if is_dense and last - first + 1 < size // 2:
        return f"indices from {first} to {last}, of {size},"
    return ""
