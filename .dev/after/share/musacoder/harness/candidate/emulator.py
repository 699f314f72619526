# SPDX-License-Identifier: Apache-2.0
"""The CUDA emulator and the PyTorch shim, through their C interfaces (emu/runtime/mc_emu.h).

Loaded once by the zygote; started in a candidate process, after the last fork. All methods are for
one process and one thread.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from harness.worker import region
from harness.worker.wire import Json


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("report_fd", ctypes.c_int32),
        ("workers", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("arena_bytes", ctypes.c_uint64),
        ("warp_size", ctypes.c_uint32),
    ]


_STICKY = {
    700: "an illegal memory access was encountered (cudaErrorIllegalAddress)",
    710: "device-side assert triggered (cudaErrorAssert)",
    716: "misaligned address (cudaErrorMisalignedAddress)",
    719: "unspecified launch failure (cudaErrorLaunchFailure)",
}


_WORKERS = 2  # Threads that run blocks; there are other candidate processes for the other cores.
_CLOSED = 2  # Device memory is inaccessible to host code (emu/runtime/mc_emu.h).

# The emulated device, as PyTorch knows it; candidates see it as cuda (cuda_on_cpu.py).
DEVICE = torch.device("privateuseone", 0)


@dataclass(frozen=True)
class Emulator:
    """Handles of the two libraries; `shim` is None where only the emulator was given."""

    runtime: Any
    shim: Any
    warp_size: int

    @staticmethod
    def load(runtime_path: str, shim_path: str | None, warp_size: int = 32) -> Emulator:
        runtime = ctypes.CDLL(runtime_path, mode=ctypes.RTLD_GLOBAL)
        runtime.mc_emu_set_schedule.argtypes = [ctypes.c_uint64]
        runtime.mc_emu_set_schedule.restype = None
        runtime.mc_emu_moved_bytes.restype = ctypes.c_uint64
        shim = ctypes.PyDLL(shim_path, mode=ctypes.RTLD_GLOBAL) if shim_path else None
        if shim is not None:
            shim.mc_shim_map.restype = ctypes.py_object
            shim.mc_shim_map.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_size_t]
            shim.mc_shim_export.argtypes = [ctypes.py_object, ctypes.c_void_p]
            _register_device()
        return Emulator(runtime, shim, warp_size)

    @property
    def has_shim(self) -> bool:
        return self.shim is not None

    def start(self, report: int | None, workers: int = _WORKERS) -> None:
        """Starts the runtime; from now on the device can be used.

        With one worker, blocks run in one order, so that a finding names the same block each time.
        """
        descriptor = -1 if report is None else report
        options = _Options(ctypes.sizeof(_Options), descriptor, workers, _CLOSED, 0, self.warp_size)
        failure = self.runtime.mc_emu_init(ctypes.byref(options))
        if failure:
            raise OSError(failure, f"the emulator cannot start: {os.strerror(failure)}")

    def allow(self, operators: Iterable[str]) -> None:
        """Operators that the device has besides those that hold tensors; "*" for all."""
        self.shim.mc_shim_allow("\n".join(operators).encode())

    def set_schedule(self, seed: int) -> None:
        self.runtime.mc_emu_set_schedule(seed & (2**64 - 1))

    def sticky_error(self) -> str:
        """What a faulting kernel left behind, or ""."""
        code = self.runtime.mc_emu_sticky_error()
        return _STICKY.get(code, f"CUDA error {code}") if code else ""

    def begin_call(self) -> None:
        """A call of forward begins: what it does is counted (emu/runtime/call.h)."""
        self.runtime.mc_emu_begin_call()

    def end_forward(self) -> None:
        """Forward has returned: the candidate's work is over."""
        self.runtime.mc_emu_end_forward()

    def moved_bytes(self) -> int:
        """What the runtime's copies put into another place on the device in this call."""
        return int(self.runtime.mc_emu_moved_bytes())

    def end_call(self) -> None:
        """The call is over and its outputs were exported; says so in the report, once."""
        if self.runtime.mc_emu_in_call():
            self.runtime.mc_emu_end_call()


class DeviceMapping:
    """A region's pages as device memory, between inaccessible ones (a region.Source)."""

    device = DEVICE

    def __init__(self, emulator: Emulator, descriptor: int) -> None:
        self._map = emulator.shim.mc_shim_map
        self._descriptor = descriptor

    def bytes_of(self, offset: int, nbytes: int, _region_bytes: int = 0) -> torch.Tensor:
        if not nbytes:
            return torch.empty(0, dtype=torch.uint8, device=DEVICE)
        mapped: torch.Tensor = self._map(self._descriptor, offset, nbytes)
        return mapped


class ExportedMemory:
    """Where outputs go: host memory, to which the emulator copies them (region.Memory)."""

    reserve, mapping, snapshot = region.HOST.reserve, region.HOST.mapping, region.HOST.snapshot

    def __init__(self, emulator: Emulator, num_outputs: int) -> None:
        """The first `num_outputs` tensors of a region are the call's outputs."""
        self._emulator = emulator
        self._num_outputs = num_outputs

    def write(self, tensors: Sequence[tuple[Json, torch.Tensor]]) -> int:
        descriptor = region.lay_out(tensors)
        source = region.Mapping(descriptor)
        targets = [
            (tensor, source.bytes_of(node["offset"], node["nbytes"])) for node, tensor in tensors
        ]
        for tensor, target in targets[: self._num_outputs]:
            self._emulator.shim.mc_shim_export(tensor, target.data_ptr())
        self._emulator.end_call()  # Copies from here on are not the candidate's work.
        for tensor, target in targets[self._num_outputs :]:
            target.copy_(region.flat_bytes(tensor))
        return descriptor


def _register_device() -> None:
    """What PyTorch asks a device's Python module."""
    module = ModuleType("torch.privateuseone")
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "current_device": 0,
        "device_count": 1,
        "_is_in_bad_fork": False,
        "_lazy_init": None,
        "manual_seed_all": None,
        "set_device": None,
        "synchronize": None,
    }
    for name, answer in answers.items():
        setattr(module, name, lambda *_, answer=answer: answer)
    torch._register_device_module(DEVICE.type, module)  # type: ignore[no-untyped-call]
