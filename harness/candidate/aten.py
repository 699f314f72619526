# SPDX-License-Identifier: Apache-2.0
"""Which ATen operators run: PyTorch's record-function callback, set from C++.

In forward all count. Before it, what counts is what they leave behind: a model may be made of
random draws, constants and copies, in any order and type, and of what the reference's own
constructor computes. What PyTorch computed beside that, and forward would use, is not the
candidate's work.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.worker import perturb
from harness.worker.wire import Json, Refusal

# Their results of weights are products of layers, whoever keeps these.
_PRODUCTS = frozenset("mm bmm addmm baddbmm addbmm mv addmv dot vdot convolution".split())


class AtenRecorder:
    """Counts the operators of one process between `start` and `stop`."""

    def __init__(self, library: Any) -> None:
        """`library` has what emu/torch/shim.h declares of recording. REQUIRES: no candidate ran."""
        self.library = library
        library.mc_guard_know()  # Later ones are a candidate's own.
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
        """The operators called since `start`, from wherever: {"aten::empty": 3}."""
        calls: Json = json.loads(self.library.mc_shim_record_stop())
        return calls

    def moved_bytes(self) -> int:
        """How much was copied on the device into another order or place, since `start`."""
        return int(self.library.mc_shim_moved_bytes())

    def watch_construction(self, allowed: Iterable[str]) -> None:
        """Until `computed`; `allowed` are operators that only bring things into place."""
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
        """A model is constructed; the products of weights that the reference's constructor, which
        calls operators so often, does not make.
        """
        calls: dict[str, int] = json.loads(self.library.mc_init_calls())
        excused = {name for name, count in calls.items() if count <= reference.get(name, 0)}
        self.library.mc_init_end_build("\n".join(excused).encode())
        return sorted(_PRODUCTS & calls.keys() - excused)

    def computed(self) -> list[str]:
        """The operators whose results are still there; ends the watch."""
        return sorted(json.loads(self.library.mc_init_computed()))


def require_none(names: list[str], policy: str) -> None:
    """Raises Refusal for operators that computed before forward what forward would use."""
    if names:
        shown = ", ".join(f"aten::{name}" for name in names[:8])
        raise Refusal(
            "operator",
            f"{shown} computed outside of forward what the candidate keeps; only draws, constants, "
            f"copies and what the reference's own __init__ computes are made there by PyTorch "
            f"(policy {policy})",
        )
