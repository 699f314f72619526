# SPDX-License-Identifier: Apache-2.0
"""Where a judge and its candidate processes compute.

Of each backend there is one implementation: the CPU's here, CUDA's in cuda_place.py. backends.py
names them; nobody else asks which device it is.
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
    """The device, the memory of its regions, and how a value's digest is taken there; and what a
    device has besides, of which the CPU has nothing.
    """

    device: torch.device
    memory: region.Memory
    digest: Callable[[Json, Sequence[torch.Tensor]], str]
    dispatch_key: str = "CPU"  # Under which PyTorch's operators of this device are registered.
    builder: str = "torch.utils.cpp_extension"  # The module that builds a candidate's extensions.
    # The package, and files in its lib folder, that hold PyTorch's own kernels.
    kernels: tuple[str, str] = ("torch", "libtorch_cuda*.so")
    # A candidate's models are drawn on the host, however large they are (draws.py).
    draws_on_host: bool = False

    @staticmethod
    def open_device() -> torch.device:
        """The device, set to compute as exactly as its dtypes are; as `open`, after the forks."""
        return region.CPU

    @classmethod
    def open(cls) -> Place:
        """The place in this process: a device's context cannot be forked."""
        return HOST_PLACE

    def triton(self) -> tuple[Names, int, int] | None:
        """The device's names, the compute capability (90) for which a candidate process compiles
        Triton's kernels, and the one whose instructions it selects; None where it has none.
        """
        return None

    @classmethod
    def open_remote(cls) -> Place:
        """The place of a candidate process, whose device another process holds."""
        raise NotImplementedError("this backend has no device process")

    def finish(self) -> None:
        """Waits for all work, and raises what it failed of."""

    def trim(self, kept_max: int = 256 << 20) -> None:
        """Gives memory that is only kept for later back to the device, unless it is little: to get
        some takes the driver's lock, for which all processes wait in line.
        """

    def held_bytes(self) -> int:
        """The memory of the device that this process keeps for tensors, in use or not."""
        return 0

    def peak_bytes(self, run: Callable[[], object]) -> int:
        """The most memory that this process holds on the device while `run` works."""
        run()
        return 0

    def peak_of(self, run: Callable[[], object]) -> int:
        """The most memory that tensors made by `run` have at a time; not known on the host, where
        nothing runs.
        """
        return 0

    def set_tf32(self, is_allowed: bool) -> None:
        """Whether products of matrices and convolutions of fp32 may round their factors to TF32."""

    def poison(self, nbytes: int, byte: int) -> None:
        """Makes memory that will be handed out next hold what no kernel wrote: this byte."""

    def forget_environment(self) -> None:
        """Removes the variables that only the start of a candidate process needs: a candidate could
        be right where it finds them alone.
        """

    def current_stream(self) -> int:
        """The native handle of the stream in which PyTorch queues its work."""
        return 0

    def captured(self, work: Callable[[], None]) -> Callable[[], None]:
        """What does the same work again, and sooner where the device can record it."""
        return work

    def seconds(self, work: Callable[[], object]) -> float:
        """How long the work takes, by the device's own clock where it has one."""
        return timeit.timeit(work, number=1)

    def disable_vendor_libraries(self) -> None:
        """PyTorch asks them for nothing any more, as far as it can be told so."""


HOST_PLACE = Place(region.CPU, region.HOST, region.digest)


def digest_by_sums(tree: Json, tensors: Sequence[torch.Tensor]) -> str:
    """A digest of sums modulo 2^64 of the data's 32-bit words times odd weights by their place.

    It is taken where the data is, and tells whether the same seed gave the same bits; nobody gains
    by a collision. Of a large tensor the words at every place modulo COLUMNS are added first.
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
    """The sum modulo 2^64 of the 32-bit words times odd weights by their place."""
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
    """A tree without what tells where its tensors happen to lie."""
    if tree["t"] == "tensor":
        return (tree["dtype"], tree["shape"])
    if tree["t"] == "dict":
        return [(key, _form(item)) for key, item in tree["items"]]
    if "items" in tree:
        return (tree["t"], [_form(item) for item in tree["items"]])
    return sorted(tree.items())
