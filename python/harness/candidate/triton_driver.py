# SPDX-License-Identifier: Apache-2.0
"""Triton in a candidate process: its own compiler, and a driver that uses the client's device.

Triton's own driver compiles C, starts ptxas and opens libcuda, none of which a candidate may do.
This backend stops at PTX, and loads and launches it with the client's driver functions
(device/client, triton_launch.py).
"""

from __future__ import annotations

import ctypes
import linecache
import os
import tempfile
from collections.abc import Callable
from typing import Any

import torch

from harness.candidate import triton_tuner
from harness.candidate.triton_launch import WARP, Cuda, Launcher, TensorMap
from harness.worker.cuda_names import Names
from harness.worker.wire import CANDIDATE_FILE, Refusal

# PTX versions: the first with 8-bit float products and with tensor descriptors that kernels make;
# and the version for compute capabilities beyond 9.0.
_OLD, _NEW = 84, 86
_MAX_THREADS, _LOCAL_BYTES, _REGISTERS, _DYNAMIC_BYTES_MAX = 0, 3, 4, 8  # CUfunction_attribute
_PROMOTION_128_BYTES = 2  # CU_TENSOR_MAP_L2_PROMOTION_L2_128B
_SHARED_DEFAULT = 48 << 10
_FLUSH_BYTES = 64 << 20


def install(names: Names, capability: int, selection: int) -> triton_tuner.Tuner:
    """Makes this the only Triton driver in this process. Triton's passes optimise for `capability`
    (90). The last passes select instructions for `selection`, which is the same or a later
    capability and the one that programs see.
    """
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton")
    from triton.backends import Backend, backends
    from triton.runtime import driver

    backends.clear()
    own = CudaDriver(names, selection)
    backends["nvidia"] = Backend(compiler=_compiler(capability, selection), driver=lambda: own)
    driver.set_active(own)
    return triton_tuner.install()


def compile_error(error: BaseException | None) -> Refusal | None:
    """The first error of Triton's compiler, with the kernel's line; None if there was none."""
    from triton.compiler.errors import CompilationError

    found = None
    while error is not None:
        found = error if isinstance(error, CompilationError) else found
        error = error.__cause__
    if found is None:
        return None
    why = found.error_message or repr(found.__cause__ or found)
    first, *_ = (found.src or "").split("\n")
    lines = [line.strip() for line in linecache.getlines(CANDIDATE_FILE)]
    begin = lines.index(first.strip()) if first.strip() in lines else -1
    line = 0 if begin < 0 else begin + getattr(found.node, "lineno", 0)
    return Refusal("compile", f"Triton: {why}", line)


def _compiler(capability: int, selection: int) -> Any:
    from triton.backends.nvidia.compiler import CUDABackend

    class PtxBackend(CUDABackend):  # type: ignore[misc]
        """Triton's compiler for NVIDIA without its last stage."""

        def __init__(self, target: Any) -> None:
            super().__init__(target)
            self.binary_ext = "ptx"
            self._version = _OLD if selection <= 90 else _NEW

        def parse_options(self, opts: dict[str, Any]) -> Any:
            if opts.get("num_ctas", 1) > 1 and capability < 90:
                ctypes.CDLL(None).mc_device_note_unsupported(b"clusters of several blocks")
            own = {"arch": f"sm{capability}", "ptx_version": self._version}
            return super().parse_options({**opts, **own})

        def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
            super().add_stages(stages, options, language)
            del stages["cubin"]

        def make_llir(self, src: Any, metadata: Any, options: Any, _capability: int) -> Any:
            return super().make_llir(src, metadata, options, selection)

        def make_ptx(self, src: Any, metadata: Any, options: Any, _capability: int) -> Any:
            return super().make_ptx(src, metadata, options, selection)

        def hash(self) -> str:
            return f"ptx-{self._version}-{capability}-{selection}"

    return PtxBackend


class _Utils:
    """The object that Triton calls a driver's utils."""

    def __init__(self, cuda: Cuda, names: Names) -> None:
        self._cuda, self._names = cuda, names

    def get_device_properties(self, _device: int) -> dict[str, int]:
        properties = self._names.module.get_device_properties(0)
        return {
            # The device's own limit, even if Triton compiles for an older device that has less.
            "max_shared_mem": int(properties.shared_memory_per_block_optin),
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

    def fill_tma_descriptor(
        self, address: int, swizzle: int, element_bytes: int, kind: int, block: Any, shape: Any,
        strides: Any, padding: int,
    ) -> TensorMap:  # fmt: skip
        """Encodes a tensor map (TMA); Triton lists dimensions from the slowest."""
        rank = len(block)
        wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        steps = [element_bytes * int(step) for step in reversed(strides[:-1])]
        tensor_map = TensorMap()
        self._cuda(
            "cuTensorMapEncodeTiled", tensor_map.place, kind, rank, ctypes.c_void_p(address),
            wide(*(int(size) for size in reversed(shape))), wide(*steps, 0),
            narrow(*(int(size) for size in reversed(block))), narrow(*[1] * rank),
            0, swizzle, _PROMOTION_128_BYTES, padding,
        )  # fmt: skip
        return tensor_map


class CudaDriver:
    """A driver with Triton's interface (triton.backends.driver.DriverBase), named like Triton's
    own.
    """

    __module__ = "triton.backends.nvidia.driver"

    def __init__(self, names: Names, capability: int) -> None:
        self._names, self._capability, self._cuda = names, capability, Cuda()
        self.utils = _Utils(self._cuda, names)

    @staticmethod
    def is_active() -> bool:
        return True

    def launcher_cls(self, source: Any, metadata: Any) -> Launcher:
        return Launcher(self._cuda, self.utils.fill_tma_descriptor, source, metadata)

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget(self._names.device, self._capability, WARP)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: int) -> None:
        """Does nothing: there is one device."""

    def get_current_stream(self, _device: int = 0) -> int:
        return int(getattr(self._names.module.current_stream(), self._names.stream))

    def get_active_torch_device(self) -> Any:
        return self._names.torch_device

    def get_device_interface(self) -> Any:
        return self._names.module

    def get_device_capability(self, _device: int = 0) -> tuple[int, int]:
        return divmod(self._capability, 10)

    def get_empty_cache_for_benchmark(self) -> Any:
        """The buffer that is written between timed calls to flush the cache."""
        return torch.empty(_FLUSH_BYTES, dtype=torch.int8, device=self._names.torch_device)

    @staticmethod
    def clear_cache(cache: Any) -> None:
        cache.zero_()

    def get_benchmarker(self) -> Callable[..., Any]:
        return triton_tuner.benchmarker(self._names.module)
