# SPDX-License-Identifier: Apache-2.0
"""The device on which a judge and its candidate processes compute.

Each backend has one implementation: the CPU's here, CUDA's in cuda_place.py. backends.py names
them; no other module depends on the kind of device.
"""

from __future__ import annotations

import hashlib
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.worker import pieces, region
from harness.worker.cuda_names import Names
from harness.worker.wire import Json

COLUMNS = 1 << 16
_WEIGHT, _OFFSET = 0x5851F42D4C957F2D, 0x14057B7EF767814F


@dataclass(frozen=True)
class Place:
    """The device, the memory of its regions and the computation of digests there; and operations
    that only a device has, which do nothing for the CPU.
    """

    device: torch.device
    memory: region.Memory
    digest: Callable[[Json, Sequence[torch.Tensor]], str]
    dispatch_key: str = "CPU"  # The dispatch key of PyTorch's operators for this device.
    builder: str = "torch.utils.cpp_extension"  # The module that builds a candidate's extensions.
    # The package, and files in its lib folder, that hold PyTorch's own kernels.
    kernels: tuple[str, str] = ("torch", "libtorch_cuda*.so")
    # If true, a candidate's weights are always drawn on the host (draws.py).
    draws_on_host: bool = False

    @staticmethod
    def open_device() -> torch.device:
        """Opens the device with full precision for all dtypes; like `open`, after the forks."""
        return region.CPU

    @classmethod
    def open(cls) -> Place:
        """Opens the place in this process, since a device's context cannot be forked."""
        return HOST_PLACE

    def triton(self) -> tuple[Names, int, int] | None:
        """The device's names, the compute capability (90) for which a candidate process compiles
        Triton's kernels, and the one whose instructions it selects; None without Triton.
        """
        return None

    @classmethod
    def open_remote(cls) -> Place:
        """The place of a candidate process, whose device another process holds."""
        raise NotImplementedError("this backend has no device process")

    def finish(self) -> None:
        """Waits for all work, and raises its errors."""

    def trim(self, kept_max: int = 256 << 20) -> None:
        """Returns cached memory to the device unless it is little: allocating it again takes the
        driver's lock, on which all processes wait.
        """

    def held_bytes(self) -> int:
        """The memory of the device that this process keeps for tensors, in use or not."""
        return 0

    def peak_bytes(self, run: Callable[[], object]) -> int:
        """The peak memory that this process holds on the device while `run` runs."""
        run()
        return 0

    def peak_of(self, run: Callable[[], object]) -> int:
        """The peak memory of tensors that `run` makes; unknown on the host, where `run` is not
        called.
        """
        return 0

    def set_tf32(self, is_allowed: bool) -> None:
        """True if products of matrices and convolutions of fp32 may round their factors to TF32."""

    def poison(self, nbytes: int, byte: int) -> None:
        """Fills the memory of the next allocations with this byte."""

    def forget_environment(self) -> None:
        """Removes the environment variables that only the start of a candidate process needs: a
        candidate could depend on them.
        """

    def current_stream(self) -> int:
        """The native handle of the stream in which PyTorch queues its work."""
        return 0

    def captured(self, work: Callable[[], None]) -> Callable[[], None]:
        """A function that repeats the work, as a recorded graph if the device supports that."""
        return work

    def seconds(self, work: Callable[[], object]) -> float:
        """The time of the work, by the device's own clock if it has one."""
        return timeit.timeit(work, number=1)

    def disable_vendor_libraries(self) -> None:
        """Disables PyTorch's use of vendor libraries, as far as it has switches."""


HOST_PLACE = Place(region.CPU, region.HOST, region.digest)


def digest_by_sums(tree: Json, tensors: Sequence[torch.Tensor]) -> str:
    """A digest of sums modulo 2^64 of the data's 32-bit words times odd weights by position.

    It is computed on the device, and shows whether the same seed gave the same bits; a collision
    benefits no one. For a large tensor the words at equal positions modulo COLUMNS are added first.
    """
    state = hashlib.blake2b(repr(_form(tree)).encode(), digest_size=32)
    for tensor in tensors:
        state.update(_keyed_sum(_folded(tensor), _WEIGHT, _OFFSET).to_bytes(8, "little"))
    return state.hexdigest()


def _folded(tensor: torch.Tensor) -> torch.Tensor:
    data = region.flat_bytes(tensor)
    whole = data.numel() // (8 * COLUMNS) * 8 * COLUMNS
    if whole == 0 or data.storage_offset() % 8:
        return data
    sums = data[:whole].view(torch.int64).view(-1, COLUMNS).sum(0)
    return torch.cat([region.flat_bytes(sums), data[whole:]])


def _keyed_sum(tensor: torch.Tensor, weight: int, offset: int) -> int:
    """The sum modulo 2^64 of the 32-bit words times odd weights by position."""
    data = region.flat_bytes(tensor)
    data = torch.nn.functional.pad(data, (0, -data.numel() % 4)).view(torch.int32)
    weight, offset = _signed(weight), _signed(offset)
    total = torch.zeros((), dtype=torch.int64, device=data.device)
    for start, end in pieces.starts(data):
        factors = torch.arange(start, end, device=data.device)
        factors.mul_(weight).add_(offset).bitwise_or_(1)
        total += factors.mul_(data[start:end]).sum()
    return int(total) % 2**64


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


def _form(tree: Json) -> object:
    """A tree without the offsets and addresses of its tensors."""
    if tree["t"] == "tensor":
        return (tree["dtype"], tree["shape"])
    if tree["t"] == "dict":
        return [(key, _form(item)) for key, item in tree["items"]]
    if "items" in tree:
        return (tree["t"], [_form(item) for item in tree["items"]])
    return sorted(tree.items())
