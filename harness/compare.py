# SPDX-License-Identifier: Apache-2.0
"""Comparing a candidate's outputs with the reference's: exact in form, tolerant in value.

The allowance for an element of a floating tensor is, with r the reference, r64 the same in double
precision where there is one, and t the tolerance of r's dtype,

    t * max(|r|, rms(r)) + K * max(|r - r64|, rms(r - r64))

where rms runs over the finite elements of r. Only the reference scales it. NaN and infinities must
stand where the reference has them. Integers, bools and all other values must be equal.
`docs/correctness.md` gives the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from harness.wire import Json

YARDSTICK_FACTOR = 4.0  # K above.
MISMATCHES_SHOWN = 5
DECADES = ("1-10", "10-100", "100-1e3", "1e3-1e4", ">=1e4")
NONFINITE = "nonfinite"
TOLERANCES: Mapping[str, float] = {
    "float64": 1e-7,
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 1e-2,
    "complex64": 1e-4,
    "complex128": 1e-7,
}


@dataclass(frozen=True)
class Comparer:
    """Compares values under one table of tolerances, by dtype name."""

    tolerances: Mapping[str, float]

    def failures(self, expected: Any, got: Any, yardstick: Any, path: str = "output") -> list[Json]:
        """One OutputCheck for each place where `got` disagrees; empty when it agrees.

        `yardstick` is the reference's value in double precision, of the same structure, or None.
        """
        if isinstance(expected, torch.Tensor):
            if not isinstance(got, torch.Tensor):
                return [_structure(path, expected, got)]
            return self._tensor(expected, got, yardstick, path)
        if isinstance(expected, (list, tuple)):
            return self._sequence(expected, got, yardstick, path)
        if isinstance(expected, dict):
            return self._dict(expected, got, yardstick, path)
        return self._scalar(expected, got, path)

    def _sequence(self, expected: Any, got: Any, yardstick: Any, path: str) -> list[Json]:
        kind = list if isinstance(expected, list) else tuple
        if not isinstance(got, kind) or len(got) != len(expected):
            return [_structure(path, expected, got)]
        found: list[Json] = []
        for i, item in enumerate(expected):
            fine = None if yardstick is None else yardstick[i]
            found += self.failures(item, got[i], fine, f"{path}[{i}]")
        return found

    def _dict(self, expected: Any, got: Any, yardstick: Any, path: str) -> list[Json]:
        if not isinstance(got, dict) or set(got) != set(expected):
            return [_structure(path, expected, got)]
        found: list[Json] = []
        for key, item in expected.items():
            fine = None if yardstick is None else yardstick[key]
            found += self.failures(item, got[key], fine, f"{path}[{key!r}]")
        return found

    def _scalar(self, expected: Any, got: Any, path: str) -> list[Json]:
        if type(expected) is not type(got):
            return [_structure(path, expected, got)]
        if isinstance(expected, float):
            tensor = torch.tensor(expected, dtype=torch.float64)
            table = {"float64": self.tolerances["float32"]}
            return Comparer(table)._tensor(
                tensor, torch.tensor(got, dtype=torch.float64), None, path
            )
        if expected != got:
            return [_problem(path, "value", f"{got!r}, expected {expected!r}")]
        return []

    def _tensor(
        self, expected: torch.Tensor, got: torch.Tensor, yardstick: Any, path: str
    ) -> list[Json]:
        if expected.shape != got.shape:
            detail = f"shape {list(got.shape)}, expected {list(expected.shape)}"
            return [_problem(path, "shape", detail)]
        if expected.dtype != got.dtype:
            return [_problem(path, "dtype", f"dtype {got.dtype}, expected {expected.dtype}")]
        if expected.device != got.device:
            return [_problem(path, "device", f"device {got.device}, expected {expected.device}")]
        if not expected.is_floating_point() and not expected.is_complex():
            return _exact(expected, got, path)
        if expected.is_complex():
            fine = yardstick is not None and torch.view_as_real(yardstick)
            real = torch.view_as_real(expected), torch.view_as_real(got)
            return self._floating(*real, fine if yardstick is not None else None, path)
        return self._floating(expected, got, yardstick, path)

    def _floating(
        self, expected: torch.Tensor, got: torch.Tensor, yardstick: Any, path: str
    ) -> list[Json]:
        tolerance = self.tolerances.get(str(expected.dtype).removeprefix("torch."), 1e-2)
        exact, mine = expected.double(), got.double()
        finite = exact.isfinite()
        allowed = allowance(exact, yardstick, tolerance)
        error = (mine - exact).abs()
        same_special = (exact == mine) | (exact.isnan() & mine.isnan())
        wrong = torch.where(finite, ~(error <= allowed), ~same_special)
        if not bool(wrong.any()):
            return []
        misplaced = wrong & (~finite | ~mine.isfinite())
        problem = NONFINITE if bool(misplaced.any()) else "value"
        detail = f"{int(wrong.sum())} of {wrong.numel()} elements are outside the tolerance"
        if problem == NONFINITE:
            detail += f", {int(misplaced.sum())} of them by a NaN or an infinity"
        check = _problem(path, problem, detail)
        check |= _evidence(expected, got, wrong)
        check |= _errors(error, allowed, wrong, finite & mine.isfinite())
        return [check]


def allowance(exact: torch.Tensor, yardstick: Any, tolerance: float) -> torch.Tensor:
    """What each element may differ by."""
    finite = exact.isfinite()
    size = torch.where(finite, exact, 0.0).abs()
    allowed = tolerance * size.clamp(min=_rms(size, finite))
    if yardstick is not None:
        fine = yardstick.double()
        both = finite & fine.isfinite()
        doubt = torch.where(both, exact - fine, 0.0).abs()
        allowed = allowed + YARDSTICK_FACTOR * doubt.clamp(min=_rms(doubt, both))
    return allowed


def _rms(size: torch.Tensor, counted: torch.Tensor) -> float:
    """Root mean square of `size` over the counted elements (the others are 0)."""
    count = int(counted.sum())
    top = float(size.max()) if count else 0.0
    if top == 0.0:
        return 0.0
    return top * math.sqrt(float((size / top).square().sum()) / count)


def _exact(expected: torch.Tensor, got: torch.Tensor, path: str) -> list[Json]:
    wrong = expected != got
    if not bool(wrong.any()):
        return []
    detail = f"{int(wrong.sum())} of {wrong.numel()} elements differ; {expected.dtype} is exact"
    check = _problem(path, "value", detail) | _evidence(expected, got, wrong)
    if expected.dtype != torch.bool:
        check["error_max"] = float((expected.double() - got.double()).abs().max())
    return [check]


def _evidence(expected: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> Json:
    places = wrong.reshape(-1).nonzero().reshape(-1)[:MISMATCHES_SHOWN].tolist()
    flat_expected, flat_got = expected.reshape(-1), got.reshape(-1)
    shown = [
        {
            "index": _index(place, list(wrong.shape)),
            "expected": _number(flat_expected[place].item()),
            "got": _number(flat_got[place].item()),
        }
        for place in places
    ]
    return {
        "num_elements": wrong.numel(),
        "num_wrong": int(wrong.sum()),
        "first_mismatches": shown,
    }


def _errors(
    error: torch.Tensor, allowed: torch.Tensor, wrong: torch.Tensor, finite: torch.Tensor
) -> Json:
    """The largest error with its allowance, and a histogram of error over allowance by decade."""
    counted = wrong & finite
    histogram = {NONFINITE: int((wrong & ~finite).sum())} if bool((wrong & ~finite).any()) else {}
    if not bool(counted.any()):
        return {"error_max": "inf", "error_tolerance": 0.0, "histogram": histogram}
    errors, limits = error[counted], allowed[counted]
    worst = int(errors.argmax())
    decades = (errors / limits.clamp(min=1e-300)).log10().floor().clamp(0, len(DECADES) - 1)
    for number, name in enumerate(DECADES):
        count = int((decades == number).sum())
        if count:
            histogram[name] = count
    return {
        "error_max": _json_real(float(errors[worst])),
        "error_tolerance": _json_real(float(limits[worst])),
        "histogram": histogram,
    }


def _index(place: int, shape: list[int]) -> list[int]:
    index = []
    for size in reversed(shape):
        index.append(place % size)
        place //= size
    return index[::-1]


def _number(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _json_real(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _problem(path: str, problem: str, detail: str) -> Json:
    return {"path": path, "problem": problem, "detail": detail}


def _structure(path: str, expected: Any, got: Any) -> Json:
    return _problem(path, "structure", f"{_shape_of(got)}, expected {_shape_of(expected)}")


def _shape_of(value: Any) -> str:
    name = "tensor" if isinstance(value, torch.Tensor) else type(value).__name__
    sized = isinstance(value, (list, tuple, dict))
    return f"a {name} of {len(value)}" if sized else f"a {name}"
