# SPDX-License-Identifier: Apache-2.0
"""The CUDA backend's Place."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from harness.worker import cuda_memory
from harness.worker.cuda_memory import CudaMemory, RemoteMemory
from harness.worker.cuda_names import CUDA, Names
from harness.worker.place import Place, digest_by_sums

# PyTorch's cpp_extension checks for a GPU, which would start the driver before the forks.
_is_available = torch.cuda.is_available
setattr(torch.cuda, "is_available", lambda: True)
from torch.utils import cpp_extension  # noqa: E402, F401  (Slow; candidates import it.)

setattr(torch.cuda, "is_available", _is_available)

_SMALL_BLOCK, _SMALL_BLOCKS = 1 << 19, 8  # PyTorch keeps blocks of less than a MiB apart.
_LARGE_MIN = 64 << 20


@dataclass(frozen=True)
class CudaPlace(Place):
    """CUDA's Place; with other `names` the Place of a platform with the same interfaces."""

    dispatch_key: str = CUDA.dispatch_key
    names: ClassVar[Names] = CUDA
    tensor_of = staticmethod(cuda_memory.tensor_of)

    @classmethod
    def open_device(cls) -> torch.device:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        return cls.names.torch_device

    @classmethod
    def open(cls) -> Place:
        return cls(cls.open_device(), CudaMemory(cls.names, cls.tensor_of), digest_by_sums)

    @classmethod
    def open_remote(cls) -> Place:
        torch.backends.cuda.enable_cudnn_sdp(False)  # Its scalars are on the host.
        return cls(cls.open_device(), RemoteMemory(cls.names, cls.tensor_of), digest_by_sums)

    def triton(self) -> tuple[Names, int, int] | None:
        major, minor = self.names.module.get_device_capability()
        capability = 10 * major + minor
        return self.names, capability, capability

    def finish(self) -> None:
        # Without this wait, the caller's reads are unordered with this stream's work
        # (stream_order.h).
        self.names.module.current_stream().synchronize()
        self.names.module.synchronize()

    def trim(self, kept_max: int = 256 << 20) -> None:
        if self.names.module.memory_reserved() > kept_max:
            self.names.module.empty_cache()

    def held_bytes(self) -> int:
        return int(self.names.module.memory_reserved())

    def peak_bytes(self, run: Callable[[], object]) -> int:
        self.trim(kept_max=0)
        self.names.module.reset_peak_memory_stats()
        run()
        self.finish()  # The inputs may be unmapped next.
        return int(self.names.module.max_memory_reserved())

    def peak_of(self, run: Callable[[], object]) -> int:
        before = int(self.names.module.memory_allocated())
        self.names.module.reset_peak_memory_stats()
        run()
        return int(self.names.module.max_memory_allocated()) - before

    def set_tf32(self, is_allowed: bool) -> None:
        torch.backends.cuda.matmul.allow_tf32 = is_allowed
        torch.backends.cudnn.allow_tf32 = is_allowed

    def poison(self, nbytes: int, byte: int) -> None:
        small = [self._filled(_SMALL_BLOCK, byte) for _ in range(_SMALL_BLOCKS)]
        large = self._filled(nbytes + _LARGE_MIN, byte)
        del small, large

    def _filled(self, nbytes: int, byte: int) -> torch.Tensor | None:
        try:
            memory = torch.empty(nbytes, dtype=torch.uint8, device=self.device)
        except torch.OutOfMemoryError:
            return None
        return memory.fill_(byte)

    def forget_environment(self) -> None:
        # The loader has already read these variables, and no child process may need them.
        for name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
            os.environ.pop(name, None)

    def current_stream(self) -> int:
        return int(getattr(self.names.module.current_stream(), self.names.stream))

    def captured(self, work: Callable[[], None]) -> Callable[[], None]:
        module: Any = self.names.module
        graph = getattr(module, self.names.graph)()
        try:
            with module.graph(graph):
                work()
        except Exception:
            module.synchronize()
            return work
        replay: Callable[[], None] = graph.replay
        return replay

    def seconds(self, work: Callable[[], object]) -> float:
        make: Callable[..., Any] = self.names.module.Event
        start, end = (make(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        self.names.module.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def disable_vendor_libraries(self) -> None:
        torch.backends.cudnn.enabled = False  # An nn.LSTM asks cuDNN for the layout of its weights.
