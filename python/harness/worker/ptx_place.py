# SPDX-License-Identifier: Apache-2.0
"""The CPU backend's Place: the judge computes on the host, a candidate has CUDA tensors.

No process has a GPU. The judge's regions are files in memory, whose bytes the device process copies
into the memory of the ptx device (device/ptx_driver). A candidate process works as on CUDA, but
PyTorch's operators on its tensors are commands (device/operators).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from harness.worker import region
from harness.worker.cuda_memory import RemoteMemory, write_aligned
from harness.worker.cuda_names import Names
from harness.worker.cuda_place import CudaPlace
from harness.worker.place import HOST_PLACE, Place, digest_by_sums
from harness.worker.wire import Json


class JudgeMemory:
    """Regions in host memory (a region.Memory), aligned as on a device."""

    reserve = staticmethod(region.HOST.reserve)
    mapping = staticmethod(region.HOST.mapping)
    snapshot = staticmethod(region.HOST.snapshot)

    def write(self, tensors: Sequence[tuple[Json, torch.Tensor]]) -> int:
        return write_aligned(self.reserve, tensors)


@dataclass(frozen=True)
class PtxPlace(CudaPlace):
    draws_on_host: bool = True  # The judge does so, too: the numbers are the same.

    def triton(self) -> tuple[Names, int, int] | None:
        """For 90 Triton would use wgmma and TMA copies, which this device lacks. For 89 it supports
        8-bit floats, but rounds float32 to them twice; so instructions are selected for an H100.
        """
        return self.names, 89, 90

    @classmethod
    def open_device(cls) -> torch.device:
        return region.CPU

    @classmethod
    def open(cls) -> Place:
        os.environ.pop("LD_PRELOAD", None)  # No program that the judge starts needs the client.
        return replace(HOST_PLACE, memory=JudgeMemory())

    def poison(self, nbytes: int, byte: int) -> None:
        """Does nothing: each tensor has its own memory, which the device process fills."""

    def forget_environment(self) -> None:
        torch.empty(0, device=self.device)  # PyTorch reads the variable only for its first tensor.
        os.environ.pop("PYTORCH_NO_CUDA_MEMORY_CACHING", None)
        super().forget_environment()

    @classmethod
    def open_remote(cls) -> Place:
        # PyTorch has these attention operators only for CUDA.
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)
        torch.backends.cudnn.enabled = False
        return cls(cls.names.torch_device, RemoteMemory(cls.names, cls.tensor_of), digest_by_sums)
