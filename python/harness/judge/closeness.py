# SPDX-License-Identifier: Apache-2.0
"""Compares floating tensors with the reference's; `compare.py` gives the formula.

The comparison works in pieces (pieces.py), on the CPU and on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from harness.worker import pieces
from harness.worker.wire import Json

BOUND_FACTOR = 4.0
BOUND_MAX = 0.1  # The limit, as a fraction of an element, for values not the task's own.
MISMATCHES_SHOWN = 5
DECADES = ("1-10", "10-100", "100-1e3", "1e3-1e4", ">=1e4")
NONFINITE = "nonfinite"
TINY = torch.finfo(torch.float64).tiny
PLAINLY = 0.98
_PLAIN = {torch.float32, torch.float64, torch.float16, torch.bfloat16}


@dataclass(frozen=True)
class _Piece:
    """A stretch of the tensors, in double precision."""

    start: int
    exact: torch.Tensor
    got: torch.Tensor
    bound: torch.Tensor | None


@dataclass
class _Tally:
    """The facts about elements outside the tolerance."""

    num_wrong: int = 0
    num_misplaced: int = 0  # Elements of which exactly one side is NaN or infinite.
    num_nonfinite: int = 0
    places: list[int] = field(default_factory=list)
    error_max: float = -1.0
    error_tolerance: float = 0.0
    decades: list[int] = field(default_factory=lambda: [0] * len(DECADES))


def error_bound_of(expected: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor:
    """The reference error bound: how much the reference's own results for an output differ, by
    element.

    It has real numbers, in fp32 at least; 0 if a result is not finite. Empty if `expected` is not
    floating.
    """
    if not expected.is_floating_point() and not expected.is_complex():
        return torch.empty(0)
    exact, *rest = (torch.view_as_real(t) if t.is_complex() else t for t in (expected, *others))
    dtype = torch.float64 if exact.dtype == torch.float64 else torch.float32
    bound = torch.zeros(exact.shape, dtype=dtype, device=exact.device)
    flat = bound.view(-1)
    for other in rest:
        for piece in _pieces(exact, other, None):
            both = piece.exact.isfinite() & piece.got.isfinite()
            distance = torch.where(both, piece.exact - piece.got, 0.0).abs()
            distance = distance.clamp(max=torch.finfo(dtype).max).to(dtype)
            part = flat[piece.start : piece.start + distance.numel()]
            torch.maximum(part, distance, out=part)
    return bound


def is_ill_conditioned(expected: torch.Tensor, bound: torch.Tensor) -> bool:
    """True if the tolerance for some element would be a large fraction of the element."""
    if not bound.numel():
        return False
    exact = torch.view_as_real(expected) if expected.is_complex() else expected
    scale = _rms(exact)
    found = (
        (BOUND_FACTOR * piece.got > BOUND_MAX * piece.exact.abs().clamp(min=scale)).any()
        for piece in _pieces(exact, bound, None)
    )
    return any(pieces.values(found))


def differences(
    expected: torch.Tensor, got: torch.Tensor, bound: torch.Tensor | None, tolerance: float
) -> Json | None:
    """Evidence of the elements outside the tolerance, for an OutputCheck; None if there are none.

    `expected` and `got` have one shape and dtype; `bound`, the error bound, has that shape.
    """
    scale = max(_rms(expected), _least(expected.dtype) / tolerance)
    if _is_plainly_right(expected, got, tolerance * scale):
        return None
    right = pieces.values(
        _is_right(piece, tolerance, scale) for piece in _pieces(expected, got, None)
    )
    if all(right):
        return None
    bound_min = _bound_rms(expected, bound) if bound is not None else 0.0
    tally = _Tally()
    for piece, is_right in zip(_pieces(expected, got, bound), right):
        if not is_right:
            _count(piece, tally, tolerance, scale, bound_min)
    return _report(tally, expected, got) if tally.num_wrong else None


def _is_plainly_right(expected: torch.Tensor, got: torch.Tensor, least: float) -> bool:
    """True if the largest error is within `least`, the smallest allowance of any element: one pass
    in the tensors' own precision, which finds nearly all right outputs. A difference of two numbers
    has a rounding error, for which PLAINLY leaves room; an overflow fails.
    """
    if expected.numel() == 0 or expected.dtype not in _PLAIN:
        return False
    flat = expected.reshape(-1), got.reshape(-1)
    largest = (
        torch.linalg.vector_norm(flat[1][start:end] - flat[0][start:end], math.inf)
        for start, end in pieces.starts(expected)
    )
    return all(error < PLAINLY * least for error in pieces.values(largest))


def _least(dtype: torch.dtype) -> float:
    """The least allowance: subnormal numbers have few bits, and -ftz=true makes them 0. It does not
    apply to half precision, whose subnormal range contains ordinary values.
    """
    smallest = torch.finfo(dtype).tiny
    return smallest if smallest < 1e-30 else 0.0


def _is_right(piece: _Piece, tolerance: float, scale: float) -> torch.Tensor:
    """True if all elements are finite and within the tolerance without the error bound. An
    infinity or a NaN on either side fails the comparison.
    """
    error = (piece.got - piece.exact).abs_()
    return (error < piece.exact.abs().clamp_(min=scale).mul_(tolerance)).all()


def _pieces(
    expected: torch.Tensor, got: torch.Tensor, bound: torch.Tensor | None
) -> Iterator[_Piece]:
    flat = [None if t is None else t.reshape(-1) for t in (expected, got, bound)]
    for start, end in pieces.starts(expected):
        exact, mine, off = (None if t is None else t[start:end].double() for t in flat)
        assert exact is not None and mine is not None
        yield _Piece(start, exact, mine, off)


def _rms(expected: torch.Tensor) -> float:
    """Root mean square of the finite elements."""
    if expected.dtype in _PLAIN and expected.numel():
        flat = expected.reshape(-1)
        norms = pieces.values(
            torch.linalg.vector_norm(flat[start:end], dtype=torch.float64)
            for start, end in pieces.starts(expected)
        )
        total = math.fsum(norm * norm for norm in norms)
        if TINY < total < math.inf:  # All are finite, and no square was lost.
            return math.sqrt(total / flat.numel())
    exact = (piece.exact for piece in _pieces(expected, expected, None))
    return _rms_of((values, values.isfinite()) for values in exact)


def _bound_rms(expected: torch.Tensor, bound: torch.Tensor) -> float:
    """Root mean square of the error bound over elements where the reference is not an exact zero:
    the zeros of a ReLU have no error.
    """
    found = _pieces(expected, expected, bound)
    pairs = ((piece.exact, piece.bound) for piece in found if piece.bound is not None)
    return _rms_of((off, exact.isfinite() & ((exact != 0) | (off > 0))) for exact, off in pairs)


def _rms_of(parts: Iterator[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Root mean square of the counted elements of all parts; no square overflows."""
    found: list[torch.Tensor] = []
    for values, counted in parts:
        size = torch.where(counted, values, 0.0).abs_()
        top = size.amax()
        squares = (size / top.clamp(min=TINY)).square_().sum()
        found += [top, squares, counted.sum()]
    numbers = pieces.values(found)
    tops, totals, count = numbers[0::3], numbers[1::3], sum(numbers[2::3])
    largest = max(tops, default=0.0)
    if largest == 0.0:
        return 0.0
    total = sum(total * (top / largest) ** 2 for top, total in zip(tops, totals))
    return largest * math.sqrt(total / count)


def _count(piece: _Piece, tally: _Tally, tolerance: float, scale: float, bound_min: float) -> None:
    exact, got = piece.exact, piece.got
    finite = exact.isfinite()
    allowed = tolerance * torch.where(finite, exact, 0.0).abs().clamp(min=scale)
    if piece.bound is not None:
        allowed = allowed + BOUND_FACTOR * piece.bound.clamp(min=bound_min)
    error = (got - exact).abs()
    same_special = (exact == got) | (exact.isnan() & got.isnan())
    wrong = torch.where(finite, ~(error <= allowed), ~same_special)
    num_wrong = int(wrong.sum())
    if not num_wrong:
        return
    tally.num_wrong += num_wrong
    tally.num_misplaced += int((wrong & (~finite | ~got.isfinite())).sum())
    if len(tally.places) < MISMATCHES_SHOWN:
        found = wrong.nonzero().reshape(-1)[: MISMATCHES_SHOWN - len(tally.places)]
        tally.places += [piece.start + place for place in found.tolist()]
    _count_errors(error, allowed, wrong, finite & got.isfinite(), tally)


def _count_errors(
    error: torch.Tensor,
    allowed: torch.Tensor,
    wrong: torch.Tensor,
    finite: torch.Tensor,
    tally: _Tally,
) -> None:
    tally.num_nonfinite += int((wrong & ~finite).sum())
    counted = wrong & finite
    if not bool(counted.any()):
        return
    errors, limits = error[counted], allowed[counted]
    worst = int(errors.argmax())
    if float(errors[worst]) > tally.error_max:
        tally.error_max, tally.error_tolerance = float(errors[worst]), float(limits[worst])
    decades = (errors / limits.clamp(min=1e-300)).log10().floor().clamp(0, len(DECADES) - 1)
    counts = decades.long().bincount(minlength=len(DECADES)).tolist()
    tally.decades = [known + count for known, count in zip(tally.decades, counts)]


def _report(tally: _Tally, expected: torch.Tensor, got: torch.Tensor) -> Json:
    detail = f"{tally.num_wrong} of {expected.numel()} elements are outside the tolerance"
    if tally.num_misplaced:
        detail += f", {tally.num_misplaced} of them by a NaN or an infinity"
    histogram = {NONFINITE: tally.num_nonfinite} if tally.num_nonfinite else {}
    histogram |= {name: count for name, count in zip(DECADES, tally.decades) if count}
    none_finite = tally.error_max < 0
    return {
        "problem": NONFINITE if tally.num_misplaced else "value",
        "detail": detail,
        "num_elements": expected.numel(),
        "num_wrong": tally.num_wrong,
        "first_mismatches": mismatches(expected, got, tally.places),
        "error_max": "inf" if none_finite else _json_real(tally.error_max),
        "error_tolerance": 0.0 if none_finite else _json_real(tally.error_tolerance),
        "histogram": histogram,
    }


def mismatches(expected: torch.Tensor, got: torch.Tensor, places: list[int]) -> list[Json]:
    """The elements at these flat indices."""
    flat_expected, flat_got = expected.reshape(-1), got.reshape(-1)
    return [
        {
            "index": _index(place, list(expected.shape)),
            "expected": _number(flat_expected[place].item()),
            "got": _number(flat_got[place].item()),
        }
        for place in places
    ]


def _index(place: int, shape: list[int]) -> list[int]:
    index = []
    for size in reversed(shape):
        index.append(place % size)
        place //= size
    return index[::-1]


def _number(value: object) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _json_real(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
