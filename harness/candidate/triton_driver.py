# SPDX-License-Identifier: Apache-2.0
"""Triton in a candidate process: its compiler as it is, and a driver whose device is the client's.

Triton's own driver compiles C, starts ptxas and opens libcuda, none of which a candidate may do.
This one stops at PTX, loads it by the driver's functions that the client has (device/client), and
packs arguments by the signature that Triton compiled for.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.worker.cuda_names import Names

TARGET = 80  # Compute capability: for 90 Triton makes wgmma, which the ptx device lacks.
PTX_VERSION = 80
WARP = 32
_MAX_THREADS, _LOCAL_BYTES, _REGISTERS, _DYNAMIC_BYTES_MAX = 0, 3, 4, 8  # CUfunction_attribute
_SHARED_DEFAULT = 48 << 10
_SHARED_MAX = 163 << 10  # A block's, of compute capability 8.0.

_SCALARS: dict[str, Any] = {
    "i1": ctypes.c_int8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u1": ctypes.c_uint8,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "fp32": ctypes.c_float,
    "f32": ctypes.c_float,
    "fp64": ctypes.c_double,
}


def install(names: Names) -> None:
    """Makes this the only driver of Triton's in this process."""
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton")
    from triton.backends import Backend, backends
    from triton.runtime import driver

    backends.clear()
    own = Driver(names)
    backends["nvidia"] = Backend(compiler=_compiler(), driver=lambda: own)
    driver.set_active(own)


def _compiler() -> Any:
    from triton.backends.nvidia.compiler import CUDABackend

    class PtxBackend(CUDABackend):  # type: ignore[misc]
        """Triton's compiler for NVIDIA without its last stage."""

        def __init__(self, target: Any) -> None:
            super().__init__(target)
            self.binary_ext = "ptx"

        def parse_options(self, opts: dict[str, Any]) -> Any:
            return super().parse_options({**opts, "ptx_version": PTX_VERSION})

        def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
            super().add_stages(stages, options, language)
            del stages["cubin"]

        def hash(self) -> str:
            return f"ptx-{PTX_VERSION}-{self.target.arch}"

    return PtxBackend


class _Cuda:
    """The driver's functions, which raise where they fail."""

    def __init__(self) -> None:
        self._client = ctypes.CDLL(None)  # The client is preloaded.

    def __call__(self, name: str, *arguments: Any) -> None:
        status = getattr(self._client, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._client.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"Triton Error [CUDA]: {name}: {(text.value or b'?').decode()}")

    def attribute(self, function: ctypes.c_void_p, number: int) -> int:
        value = ctypes.c_int()
        self("cuFuncGetAttribute", ctypes.byref(value), number, function)
        return value.value


class _Utils:
    """What Triton calls a driver's utils."""

    def __init__(self, cuda: _Cuda, names: Names) -> None:
        self._cuda, self._names = cuda, names

    def get_device_properties(self, _device: int) -> dict[str, int]:
        properties = self._names.module.get_device_properties(0)
        return {
            "max_shared_mem": _SHARED_MAX,
            "max_num_regs": 65536,
            "multiprocessor_count": properties.multi_processor_count,
            "warpSize": WARP,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 5120,
        }

    def load_binary(
        self, name: str, text: bytes, shared: int, _device: int
    ) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spilled registers and the most threads of a block."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._cuda("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text))
        self._cuda("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > _SHARED_DEFAULT:
            self._cuda("cuFuncSetAttribute", function, _DYNAMIC_BYTES_MAX, shared)
        facts = [
            self._cuda.attribute(function, number)
            for number in (_REGISTERS, _LOCAL_BYTES, _MAX_THREADS)
        ]
        assert module.value and function.value
        return module.value, function.value, facts[0], facts[1] // 4, facts[2]


def _leaves(kind: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """Types and values that are not constants, with tuples taken apart."""
    if isinstance(kind, tuple):
        for inner, one in zip(kind, value, strict=True):
            yield from _leaves(inner, one)
    elif kind != "constexpr":
        yield kind, value


def _packed(kind: str, value: Any) -> Any:
    if kind.startswith("*"):
        address = value.data_ptr() if hasattr(value, "data_ptr") else value or 0
        return ctypes.c_uint64(address)
    if kind not in _SCALARS:
        raise RuntimeError(f"an argument of Triton's type {kind} is not judged yet")
    return _SCALARS[kind](value)


class _Launcher:
    """Launches one compiled kernel."""

    def __init__(self, cuda: _Cuda, source: Any, metadata: Any) -> None:
        self._cuda = cuda
        self._kinds = list(source.signature.values())
        self._threads = metadata.num_warps * WARP
        self._shared = metadata.shared
        if getattr(metadata, "num_ctas", 1) > 1:
            raise RuntimeError("Triton's clusters of several blocks are not judged")
        if metadata.launch_cooperative_grid or metadata.global_scratch_size:
            raise RuntimeError("cooperative grids and scratch memory of Triton are not judged yet")

    def __call__(
        self, x: int, y: int, z: int, stream: int, function: int, *rest: Any
    ) -> None:
        _packed_metadata, launch_metadata, enter, leave, *values = rest
        if 0 in (x, y, z):
            return
        leaves = [
            leaf
            for kind, value in zip(self._kinds, values, strict=True)
            for leaf in _leaves(kind, value)
        ]
        held = [_packed(kind, value) for kind, value in leaves]
        held += [ctypes.c_uint64(0), ctypes.c_uint64(0)]  # Scratch memory, and that of profilers.
        places = (ctypes.c_void_p * len(held))(*(ctypes.addressof(one) for one in held))
        if enter is not None:
            enter(launch_metadata)
        self._cuda(
            "cuLaunchKernel", ctypes.c_void_p(function), x, y, z, self._threads, 1, 1, self._shared,
            ctypes.c_void_p(stream), places, None,
        )  # fmt: skip
        if leave is not None:
            leave(launch_metadata)


class Driver:
    """A driver as Triton asks for it (triton.backends.driver.DriverBase)."""

    def __init__(self, names: Names) -> None:
        self._names, self._cuda = names, _Cuda()
        self.utils = _Utils(self._cuda, names)

    @staticmethod
    def is_active() -> bool:
        return True

    def launcher_cls(self, source: Any, metadata: Any) -> _Launcher:
        return _Launcher(self._cuda, source, metadata)

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget(self._names.device, TARGET, WARP)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: int) -> None:
        """There is one."""

    def get_current_stream(self, _device: int = 0) -> int:
        return int(getattr(self._names.module.current_stream(), self._names.stream))

    def get_active_torch_device(self) -> Any:
        return self._names.torch_device

    def get_device_interface(self) -> Any:
        return self._names.module

    def get_benchmarker(self) -> Callable[..., Any]:
        return _run_once


def _run_once(
    call: Callable[[], Any], quantiles: Sequence[float] = (0.5,), **_: Any
) -> list[float]:
    """A device without time: every configuration runs, and an autotuner takes the first one."""
    call()
    return [1.0] * len(quantiles)
