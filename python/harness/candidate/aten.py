# SPDX-License-Identifier: Apache-2.0
"""Which ATen operators run: PyTorch's record-function callback, set from C++.

In forward all operators count, and so do casts that change values. Before it, a model may be made
of random draws, constants and copies, in any order, and of operators that the reference's own
constructor calls. Any other operator that computes counts, even if its result is dropped.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.worker import perturb
from harness.worker.wire import Json, Refusal

ELEMENTS_MAX = 16  # Larger results of operators in a constructor count.

# Their products of weights count, however small the results are.
_PRODUCTS = frozenset("mm bmm addmm baddbmm addbmm mv addmv dot vdot convolution".split())


class AtenRecorder:
    """Counts the operators of one process between `start` and `stop`."""

    def __init__(self, library: Any) -> None:
        """`library` has the functions of the facade's runtime.h. REQUIRES: no candidate ran."""
        self.library = library
        library.mc_guard_know()  # Operators defined later are a candidate's own.
        library.mc_shim_record_start.restype = None
        library.mc_shim_record_stop.restype = ctypes.c_char_p
        library.mc_shim_moved_bytes.restype = ctypes.c_uint64
        library.mc_init_calls.restype = ctypes.c_char_p
        library.mc_init_computed.restype = ctypes.c_char_p

    @staticmethod
    def load(path: str) -> AtenRecorder:
        return AtenRecorder(ctypes.PyDLL(path, mode=ctypes.RTLD_GLOBAL))

    def start(self) -> None:
        self.library.mc_shim_record_start()

    def stop(self) -> Json:
        """The calls of operators since `start`, by any caller: {"aten::empty": 3}."""
        calls: Json = json.loads(self.library.mc_shim_record_stop())
        return calls

    def moved_bytes(self) -> int:
        """The bytes that copies on the device reordered or moved since `start`."""
        return int(self.library.mc_shim_moved_bytes())

    def watch_construction(self, allowed: Iterable[str]) -> None:
        """Counts operators until `computed`; `allowed` are operators that only move data."""
        self.library.mc_init_watch("\n".join(allowed).encode())
        perturb.unnoticed = self._unnoticed

    @contextlib.contextmanager
    def _unnoticed(self) -> Iterator[None]:
        self.library.mc_init_pause(1)
        try:
            yield
        finally:
            self.library.mc_init_pause(0)

    def end_build(self, reference: Mapping[str, int]) -> list[str]:
        """Call this when a model is constructed. Returns the operators that were called more often
        than by the reference's constructor and computed more than a few scalars.
        """
        calls, elements = json.loads(self.library.mc_init_calls())
        excess = {
            call: elements[call] * (count - reference.get(call, 0)) // count
            for call, count in calls.items()
            if count > reference.get(call, 0) and not _is_free_cast(call, reference)
        }
        self.library.mc_init_end_build("\n".join(calls.keys() - excess.keys()).encode())
        if sum(excess.values()) <= ELEMENTS_MAX:
            excess = {call: num for call, num in excess.items() if _name_of(call) in _PRODUCTS}
        return sorted({_name_of(call) for call, num in excess.items() if num})

    def computed(self) -> list[str]:
        """Ends the watch; returns the operators whose scaled random draws still exist."""
        return sorted({_name_of(call) for call in json.loads(self.library.mc_init_computed())})


_CAST = "cast "
_TYPES = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
    "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64", "Bool": "bool", "Half": "float16",
    "BFloat16": "bfloat16", "Float": "float32", "Double": "float64",
    "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip
_INEXACT = ("float", "bfloat", "complex")


def without_free_casts(calls: Mapping[str, int], reference: Mapping[str, int]) -> dict[str, int]:
    """`calls` without the casts that a candidate may leave to PyTorch."""
    return {
        _name_of(call) if call.startswith(_CAST) else call: count
        for call, count in calls.items()
        if not _is_free_cast(call, reference)
    }


def _is_free_cast(call: str, reference: Mapping[str, int]) -> bool:
    """True for a cast to a floating type that the task's tensors have, or between floating types if
    the reference makes no such cast, since the rounding is then not a part of the task. A cast to
    another type is free only if the reference makes it, too (python/harness/judge/operators.py). A
    cast to a part of a complex number is not free.
    """
    if not call.startswith(_CAST):
        return False
    source, target = _types_of(call)
    if source.startswith("complex") and not target.startswith("complex"):
        return False
    is_made = f"{_CAST}{source} to {target}" in reference
    if not target.startswith(_INEXACT):
        return is_made
    is_rounding = source.startswith(_INEXACT)
    return f"{_CAST}{target}" in reference or (is_rounding and not is_made)


def _types_of(call: str) -> list[str]:
    return [_TYPES.get(name, name) for name in call.removeprefix(_CAST).split()]


def _name_of(call: str) -> str:
    """ "mul" for "mul.Tensor[300]", "cast float32 to int32" for "cast Float Int"."""
    if call.startswith(_CAST):
        return _CAST + " to ".join(_types_of(call))
    return call.split("[")[0].split(".")[0]


def require_none(names: list[str], policy: str) -> None:
    """Raises Refusal for operators that computed results for forward in advance."""
    if names:
        shown = ", ".join(name if name.startswith(_CAST) else f"aten::{name}" for name in names[:8])
        raise Refusal(
            "operator",
            f"{shown} computed outside of forward; only draws, constants, copies and what the "
            f"reference's own __init__ computes of the same shapes are made there by PyTorch "
            f"(policy {policy})",
        )
