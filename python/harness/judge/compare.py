# SPDX-License-Identifier: Apache-2.0
"""Comparing a candidate's outputs with the reference's: exact in form, tolerant in value.

The allowance for an element of a floating tensor is, with r the reference, d its error bound (its
largest difference from itself in double precision and with its sums in another order), and t the
tolerance of r's dtype,

    t * max(|r|, rms(r)) + 4 * max(d, rms(d))

where rms runs over finite elements. Except in half precision, the allowance is at least the
smallest normal number of r's dtype. Only the reference determines it. NaN and infinities must be
where the reference has them. Integers, bools and all other values must be equal.
`docs/correctness.md` gives the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from harness.judge.closeness import MISMATCHES_SHOWN, differences, mismatches
from harness.worker.wire import Json

TOLERANCES: Mapping[str, float] = {
    "float64": 1e-7,
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 1e-2,
    "float8_e4m3fn": 0.125,  # One step of the last of three bits.
    "float8_e5m2": 0.25,
    "complex64": 1e-4,
    "complex128": 1e-7,
}
KEYS_SHOWN = 5
KEY_CHARACTERS_MAX = 80
DETAIL_MAX = 2000  # Characters; a candidate's value may be a text of megabytes.


@dataclass(frozen=True)
class Comparer:
    """Compares values under one table of tolerances, by dtype name."""

    tolerances: Mapping[str, float]

    def failures(self, expected: Any, got: Any, bound: Any, path: str = "output") -> list[Json]:
        """One OutputCheck for each place where `got` disagrees; empty when it agrees.

        `bound` has the structure of `expected`, with each tensor's error bound (closeness.py), or
        is None.
        """
        if isinstance(expected, torch.Tensor):
            if not isinstance(got, torch.Tensor):
                return [_structure(path, expected, got)]
            return self._tensor(expected, got, bound, path)
        if isinstance(expected, (list, tuple)):
            return self._sequence(expected, got, bound, path)
        if isinstance(expected, dict):
            return self._dict(expected, got, bound, path)
        return self._scalar(expected, got, path)

    def _sequence(self, expected: Any, got: Any, bound: Any, path: str) -> list[Json]:
        kind = list if isinstance(expected, list) else tuple
        if not isinstance(got, kind) or len(got) != len(expected):
            return [_structure(path, expected, got)]
        found: list[Json] = []
        for i, item in enumerate(expected):
            part = None if bound is None else bound[i]
            found += self.failures(item, got[i], part, f"{path}[{i}]")
        return found

    def _dict(self, expected: Any, got: Any, bound: Any, path: str) -> list[Json]:
        if not isinstance(got, dict):
            return [_structure(path, expected, got)]
        if set(got) != set(expected):
            return [_problem(path, "structure", _difference_of_keys(expected, got))]
        found: list[Json] = []
        for key, item in expected.items():
            part = None if bound is None else bound[key]
            found += self.failures(item, got[key], part, f"{path}[{key!r}]")
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
        self, expected: torch.Tensor, got: torch.Tensor, bound: Any, path: str
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
            real = torch.view_as_real(expected), torch.view_as_real(got)
            return self._floating(*real, bound, path)
        return self._floating(expected, got, bound, path)

    def _floating(
        self, expected: torch.Tensor, got: torch.Tensor, bound: Any, path: str
    ) -> list[Json]:
        tolerance = self.tolerances.get(str(expected.dtype).removeprefix("torch."), 1e-2)
        evidence = differences(expected, got, bound, tolerance)
        return [] if evidence is None else [{"path": path, **evidence}]


def _exact(expected: torch.Tensor, got: torch.Tensor, path: str) -> list[Json]:
    wrong = expected != got
    if not bool(wrong.any()):
        return []
    num_wrong = int(wrong.sum())
    detail = f"{num_wrong} of {wrong.numel()} elements differ; {expected.dtype} is exact"
    places = wrong.reshape(-1).nonzero().reshape(-1)[:MISMATCHES_SHOWN].tolist()
    check = _problem(path, "value", detail)
    check |= {"num_elements": wrong.numel(), "num_wrong": num_wrong}
    check["first_mismatches"] = mismatches(expected, got, places)
    if expected.dtype != torch.bool:
        check["error_max"] = float((expected.double() - got.double()).abs().max())
    return [check]


def _problem(path: str, problem: str, detail: str) -> Json:
    return {"path": path, "problem": problem, "detail": detail[:DETAIL_MAX]}


def _structure(path: str, expected: Any, got: Any) -> Json:
    return _problem(path, "structure", f"{_shape_of(got)}, expected {_shape_of(expected)}")


def _difference_of_keys(expected: Mapping[Any, Any], got: Mapping[Any, Any]) -> str:
    lacking = [key for key in expected if key not in got]
    foreign = [key for key in got if key not in expected]
    found = [f"lacks {_some(lacking)}"] if lacking else []
    found += [f"has {_some(foreign)}, which the reference has not"] if foreign else []
    return f"a dict that {' and '.join(found)}"


def _some(keys: list[Any]) -> str:
    """The first keys, long ones cut off: a candidate's key may be any text."""
    shown = ", ".join(repr(key)[:KEY_CHARACTERS_MAX] for key in keys[:KEYS_SHOWN])
    more = len(keys) - KEYS_SHOWN
    end = f" and {more} more" if more > 0 else ""
    return f"the key{'s' if len(keys) > 1 else ''} {shown}{end}"


def _shape_of(value: Any) -> str:
    name = "tensor" if isinstance(value, torch.Tensor) else type(value).__name__
    sized = isinstance(value, (list, tuple, dict))
    return f"a {name} of {len(value)}" if sized else f"a {name}"
