# SPDX-License-Identifier: Apache-2.0
"""The native library of those who are timed on a device (device/mc_device.h)."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from typing import Any

import torch

from harness.worker.place import Place
from harness.worker.wire import Json, Refusal

CHANNEL = 3  # The descriptor on which the supervisor waits for answers (zygote.py).


class _Launches(ctypes.Structure):
    _fields_ = [("all", ctypes.c_uint64), ("own", ctypes.c_uint64)]


class Device:
    """One process's gate, arena and trace. To be made before the device is used."""

    def __init__(self, path: str) -> None:
        self._path = path
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        library.mc_trace_take.restype = ctypes.c_char_p
        library.mc_trace_launches.restype = _Launches
        library.mc_trace_own.restype = None
        library.mc_arena_open.restype = None
        self._library = library
        self._call("mc_trace_attach")
        # A forward may keep what it allocated (a workspace, packed weights), so none is given back.
        self._pools: list[Callable[[], Any]] = []
        self._arenas: list[torch.Tensor] = []

    def remove_vendors(self) -> None:
        """Takes their device code from the vendors' libraries; who needs it ends the process."""
        self._call("mc_vendors_remove", CHANNEL)

    def own(self, path: str) -> None:
        """The kernels of this file are the candidate's."""
        self._library.mc_trace_own(path.encode())

    def launches(self) -> int:
        """How many of the candidate's kernels, and graphs, were launched by now."""
        return int(self._library.mc_trace_launches().own)

    def open_arena(self, memory: torch.Tensor, place: Place) -> None:
        """From now on `pool` hands out this memory, which stays mapped."""
        self._arenas.append(memory)
        base, nbytes = ctypes.c_uint64(memory.data_ptr()), ctypes.c_uint64(memory.numel())
        self._library.mc_arena_open(base, nbytes)
        self._pools.append(place.arena_pool(self._path))

    def close_arenas(self) -> None:
        """Unmaps them. Raises Refusal where something of the last one is still allocated, as what
        PyTorch keeps for all calls may be.
        """
        if not self._arenas:
            return
        self._pools.clear()
        if not self._library.mc_arena_is_whole():
            raise Refusal("exception", "memory of the arena is still in use")
        self._arenas.clear()

    def pool(self) -> Any:
        """A context in which PyTorch allocates from the last arena."""
        return self._pools[-1]()

    def attach_gate(self, descriptor: int) -> None:
        self._call("mc_gate_attach", descriptor)

    def close_gate(self, number: int) -> None:
        self._call("mc_gate_close", ctypes.c_uint32(number))

    def await_gate(self, number: int) -> None:
        self._call("mc_gate_await", ctypes.c_uint32(number))

    def end(self) -> None:
        self._call("mc_gate_end")

    def finish(self, number: int) -> float:
        """Waits for the device; the microseconds between the batch's two events."""
        elapsed = ctypes.c_double()
        self._call("mc_gate_finish", ctypes.c_uint32(number), ctypes.byref(elapsed))
        return elapsed.value

    def take_trace(self) -> Json:
        """What ran in the batch that has just finished (mc_device.h); {} if it was not traced."""
        text = self._library.mc_trace_take()
        if text is None:
            raise Refusal("exception", "CUPTI cannot trace here")
        trace: Json = json.loads(text or "{}")
        return trace

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} failed with error {status}")
