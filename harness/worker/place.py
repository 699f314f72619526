# SPDX-License-Identifier: Apache-2.0
"""Where a judge and its contestants compute: on the CPU, or on a CUDA device."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from harness.worker import pieces, region
from harness.worker.wire import Json

_SMALL_BLOCK, _SMALL_BLOCKS = 1 << 19, 8  # PyTorch keeps blocks of less than a MiB apart.
_LARGE_MIN = 64 << 20
_KEPT_MAX = 256 << 20
_WEIGHT, _OFFSET = 0x5851F42D4C957F2D, 0x14057B7EF767814F


@dataclass(frozen=True)
class Place:
    """The device, the memory of its regions, and how a value's digest is taken there."""

    device: torch.device
    memory: region.Memory
    digest: Callable[[Json, Sequence[torch.Tensor]], str]

    def finish(self) -> None:
        """Waits for all work, and raises what it failed of."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def trim(self) -> None:
        """Gives memory that is only kept for later back to the device, unless it is little: to get
        some takes the driver's lock, for which all processes wait in line.
        """
        if self.device.type == "cuda" and torch.cuda.memory_reserved() > _KEPT_MAX:
            torch.cuda.empty_cache()

    def poison(self, nbytes: int) -> None:
        """Makes memory that will be handed out next hold what no kernel wrote: NaN."""
        if self.device.type != "cuda":
            return
        small = [self._filled(_SMALL_BLOCK) for _ in range(_SMALL_BLOCKS)]
        large = self._filled(nbytes + _LARGE_MIN)
        del small, large

    def _filled(self, nbytes: int) -> torch.Tensor | None:
        try:
            memory = torch.empty(nbytes, dtype=torch.uint8, device=self.device)
        except torch.OutOfMemoryError:
            return None
        return memory.fill_(0xFF)


HOST_PLACE = Place(torch.device("cpu"), region.HOST, region.digest)


def cuda_place() -> Place:
    """Creates the device's context in this process."""
    from harness.worker.cuda_memory import DEVICE, CudaMemory

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return Place(DEVICE, CudaMemory(), digest_by_sums)


def digest_by_sums(tree: Json, tensors: Sequence[torch.Tensor]) -> str:
    """A digest of sums modulo 2^64 of the data's 32-bit words times odd weights by their place.

    It is taken where the data is, and tells whether the same seed gave the same bits; nobody gains
    by a collision.
    """
    state = hashlib.blake2b(repr(_form(tree)).encode(), digest_size=32)
    for tensor in tensors:
        state.update(keyed_sum(tensor, _WEIGHT, _OFFSET).to_bytes(8, "little"))
    return state.hexdigest()


def keyed_sum(tensor: torch.Tensor, weight: int, offset: int) -> int:
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
