# SPDX-License-Identifier: Apache-2.0
"""The CUDA emulator and the PyTorch shim, through their C interfaces (emu/runtime/mc_emu.h).

Loaded once by the zygote; started in a contestant, after the last fork. All methods are for one
process and one thread.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass
from typing import Any

import torch


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("report_fd", ctypes.c_int32),
        ("workers", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("arena_bytes", ctypes.c_uint64),
    ]


_STICKY = {
    700: "an illegal memory access was encountered (cudaErrorIllegalAddress)",
    710: "device-side assert triggered (cudaErrorAssert)",
    716: "misaligned address (cudaErrorMisalignedAddress)",
    719: "unspecified launch failure (cudaErrorLaunchFailure)",
}


@dataclass(frozen=True)
class Emulator:
    """Handles of the two libraries; `shim` is None where only the emulator was given."""

    runtime: Any
    shim: Any

    @staticmethod
    def load(runtime_path: str, shim_path: str | None) -> Emulator:
        runtime = ctypes.CDLL(runtime_path, mode=ctypes.RTLD_GLOBAL)
        runtime.mc_emu_arena_map.restype = ctypes.c_void_p
        runtime.mc_emu_arena_map.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_size_t]
        runtime.mc_emu_set_schedule.argtypes = [ctypes.c_uint64]
        runtime.mc_emu_set_schedule.restype = None
        shim = ctypes.PyDLL(shim_path, mode=ctypes.RTLD_GLOBAL) if shim_path else None
        return Emulator(runtime, shim)

    @property
    def has_shim(self) -> bool:
        return self.shim is not None

    def start(self, report: int | None) -> None:
        """Starts the runtime; from now on every tensor of this process lies in the arena."""
        descriptor = -1 if report is None else report
        options = _Options(ctypes.sizeof(_Options), descriptor, 0, 0, 0)
        failure = self.runtime.mc_emu_init(ctypes.byref(options))
        if failure:
            raise OSError(failure, f"the emulator cannot start: {os.strerror(failure)}")
        failure = self.shim.mc_shim_enable_arena() if self.shim is not None else 0
        if failure:
            raise OSError(failure, f"the arena cannot be used: {os.strerror(failure)}")

    def set_schedule(self, seed: int) -> None:
        self.runtime.mc_emu_set_schedule(seed & (2**64 - 1))

    def sticky_error(self) -> str:
        """What a faulting kernel left behind, or ""."""
        code = self.runtime.mc_emu_sticky_error()
        return _STICKY.get(code, f"CUDA error {code}") if code else ""


class GuardedMapping:
    """A region's pages between inaccessible ones (a region.Source)."""

    def __init__(self, emulator: Emulator, descriptor: int) -> None:
        self._map = emulator.runtime.mc_emu_arena_map
        self._descriptor = descriptor

    def bytes_of(self, offset: int, nbytes: int, _region_bytes: int = 0) -> torch.Tensor:
        if not nbytes:
            return torch.empty(0, dtype=torch.uint8)
        pointer = self._map(self._descriptor, offset, nbytes)
        if not pointer:
            raise MemoryError(f"cannot map {nbytes} bytes of the input region")
        assert pointer % mmap.PAGESIZE == offset % mmap.PAGESIZE
        return torch.frombuffer((ctypes.c_uint8 * nbytes).from_address(pointer), dtype=torch.uint8)
