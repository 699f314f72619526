# SPDX-License-Identifier: Apache-2.0
"""device/cuda/stopwatch.h, for a process that runs the calls itself."""

from __future__ import annotations

import ctypes

from harness.worker.place import Place


class Stopwatch:
    """Times calls in the stream in which PyTorch queues its work."""

    def __init__(self, library: str, place: Place) -> None:
        place.finish()  # The native code needs the context.
        native = ctypes.CDLL(library)
        native.mc_stopwatch_create.restype = ctypes.c_void_p
        handle = native.mc_stopwatch_create()
        if not handle:
            raise RuntimeError("the stopwatch cannot be made")
        self._native, self._handle, self._place = native, ctypes.c_void_p(handle), place

    def reset(self) -> None:
        """Forgets all calls."""
        self._place.finish()
        self._native.mc_stopwatch_reset(self._handle)

    def begin(self, *, is_gated: bool) -> None:
        """Flushes the cache and begins a call."""
        gated = ctypes.c_int(is_gated)
        self._check(self._native.mc_stopwatch_begin(self._handle, self._stream(), gated))

    def end(self) -> None:
        """Ends the call."""
        self._check(self._native.mc_stopwatch_end(self._handle, self._stream()))

    def times(self, calls: int) -> list[tuple[float, bool]]:
        """Microseconds of each call, and whether all of it was queued before it began."""
        us, whole = (ctypes.c_double * calls)(), (ctypes.c_int * calls)()
        count = self._native.mc_stopwatch_times(self._handle, us, whole, ctypes.c_uint32(calls))
        if count != calls:
            raise RuntimeError("the stopwatch did not time all calls")
        return [(us[number], bool(whole[number])) for number in range(calls)]

    def _stream(self) -> ctypes.c_uint64:
        return ctypes.c_uint64(self._place.current_stream())

    @staticmethod
    def _check(status: int) -> None:
        if status:
            raise RuntimeError(f"the stopwatch failed with error {status}")
