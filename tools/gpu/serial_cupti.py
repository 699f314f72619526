# SPDX-License-Identifier: Apache-2.0
"""Times of kernels from CUPTI's serialising mode, which PyTorch's profiler does not use.

CUPTI traces kernels in one of two modes (`cupti_activity.h`). In the one that the profiler uses,
CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernels may run beside each other, and CUPTI instruments
their code: that takes time for each block. In CUPTI_ACTIVITY_KIND_KERNEL kernels run one after the
other as they are, and each takes some 2 us longer for it, however many blocks it has.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Iterator

LIBRARY = "libcupti.so.13"  # PyTorch's own, which is loaded with it.
SUCCESS = 0
KIND_KERNEL = 3
FLUSH_FORCED = 1
BUFFER_WORDS = 1 << 17  # 1 MiB, in words of 8 bytes, as CUPTI wants buffers aligned.

_Requested = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),  # The buffer,
    ctypes.POINTER(ctypes.c_size_t),  # its bytes,
    ctypes.POINTER(ctypes.c_size_t),  # and how many records it may have; 0 for any number.
)
_Completed = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,  # The context,
    ctypes.c_uint32,  # the stream,
    ctypes.c_void_p,  # the buffer,
    ctypes.c_size_t,  # its bytes,
    ctypes.c_size_t,  # and those with records.
)


class _Kernel(ctypes.Structure):
    """How CUpti_ActivityKernel4 and all later ones begin."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("caches", ctypes.c_uint8 * 2),
        ("registers", ctypes.c_uint16),
        ("global_caches", ctypes.c_uint32 * 2),
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
    )


def kernels_us(run: Callable[[], object]) -> list[float]:
    """How long each kernel took that `run` launched, in the order they ran in.

    `run` waits for them. Raises RuntimeError where CUPTI reports an error.
    """
    return _tracer().kernels_us(run)


class _Tracer:
    """Of this process. The buffers that CUPTI was given are kept until it gives them back."""

    def __init__(self) -> None:
        self.cupti = ctypes.CDLL(LIBRARY)
        self.buffers: dict[int, ctypes.Array[ctypes.c_uint64]] = {}
        self.spans: list[tuple[int, int]] = []
        self.requested = _Requested(self.give)
        self.completed = _Completed(self.take)

    def kernels_us(self, run: Callable[[], object]) -> list[float]:
        self.spans = []
        ticks, began_ns = self.ticks(), time.monotonic_ns()
        # Each time, since the profiler puts its own in their place.
        self.call("cuptiActivityRegisterCallbacks", self.requested, self.completed)
        self.call("cuptiActivityEnable", KIND_KERNEL)
        try:
            run()
        finally:
            self.call("cuptiActivityFlushAll", FLUSH_FORCED)
            self.call("cuptiActivityDisable", KIND_KERNEL)
        # The profiler has CUPTI count the processor's ticks in place of nanoseconds, and for good.
        ticks_us = 1e3 * (self.ticks() - ticks) / (time.monotonic_ns() - began_ns)
        return [(end - start) / ticks_us for start, end in sorted(self.spans)]

    def ticks(self) -> int:
        """Now, in the unit of what is traced."""
        found = ctypes.c_uint64()
        self.call("cuptiGetTimestamp", ctypes.byref(found))
        return found.value

    def call(self, name: str, *arguments: object) -> None:
        result = getattr(self.cupti, name)(*arguments)
        if result != SUCCESS:
            raise RuntimeError(f"{name}: error {result} (CUptiResult)")

    def give(self, buffer, size, max_records) -> None:  # type: ignore[no-untyped-def]
        made = (ctypes.c_uint64 * BUFFER_WORDS)()
        buffer[0] = address = ctypes.addressof(made)
        size[0] = ctypes.sizeof(made)
        max_records[0] = 0
        self.buffers[address] = made

    def take(self, context: int, stream: int, buffer: int, size: int, valid: int) -> None:
        self.spans += self.spans_in(buffer, valid)
        self.buffers.pop(buffer, None)

    def spans_in(self, buffer: int, valid: int) -> Iterator[tuple[int, int]]:
        record = ctypes.c_void_p()
        next_record = self.cupti.cuptiActivityGetNextRecord
        while (
            next_record(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record))
            == SUCCESS
        ):
            kernel = ctypes.cast(record, ctypes.POINTER(_Kernel)).contents
            if kernel.kind == KIND_KERNEL:
                yield kernel.start, kernel.end


@functools.cache
def _tracer() -> _Tracer:
    return _Tracer()
