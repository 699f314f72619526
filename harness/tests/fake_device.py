# SPDX-License-Identifier: Apache-2.0
"""A device for tests of timing: gate, arena and trace of device.py, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from harness.worker import region
from harness.worker.place import Place
from harness.worker.wire import Json

ELAPSED_US = 12.5
ALIGNMENT = 512


class FakeDevice:
    """Two words of a gate, which the test sets and reads as the supervisor would.

    There is no stream: what is queued behind a closed gate runs at once. What would wait for ever
    is an error.
    """

    def __init__(self) -> None:
        self.gate = 0
        self.ready = 0
        self.journal: list[str] = []
        self.traced: Json = {}  # What the next trace tells.
        self._memory = torch.empty(0, dtype=torch.uint8)
        self._end = 0

    def attach_gate(self, descriptor: int) -> None:
        self.journal.append("attach")

    def open_arena(self, memory: torch.Tensor, _place: Place) -> None:
        self._memory = memory

    def pool(self) -> Any:
        """A context in which every new tensor lies in the arena, from its beginning again."""
        self._end = 0
        return _Allocating(self)

    def close_gate(self, number: int) -> None:
        self.journal.append(f"close {number}")

    def await_gate(self, number: int) -> None:
        self.ready = number
        self._pass(number)
        self.journal.append(f"await {number}")

    def end(self) -> None:
        self.journal.append("end")

    def finish(self, number: int) -> float:
        self.ready = number
        self._pass(number)
        self.journal.append(f"finish {number}")
        return ELAPSED_US

    def take_trace(self) -> Json:
        self.journal.append("trace")
        return self.traced

    def holds(self, tensor: torch.Tensor) -> bool:
        offset = tensor.untyped_storage().data_ptr() - self._memory.untyped_storage().data_ptr()
        return 0 <= offset < self._memory.numel()

    def moved(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor in memory of the arena, with the same strides."""
        storage = tensor.untyped_storage().nbytes()
        room = self._memory[self._end : self._end + storage].view(tensor.dtype)
        assert room.numel() * tensor.element_size() == storage, "the arena is full"
        self._end += -(-storage // ALIGNMENT) * ALIGNMENT
        start = room.storage_offset() + tensor.storage_offset()
        return room.as_strided(tensor.shape, tensor.stride(), start).copy_(tensor)

    def _pass(self, number: int) -> None:
        assert self.gate >= number, f"batch {number} waits for ever: nobody opens its gate"


class _Allocating(TorchFunctionMode):
    """Moves the results of PyTorch's functions to the arena, except views of what was there."""

    def __init__(self, device: FakeDevice) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(
        self, function: Callable[..., Any], _types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if type(result) is not torch.Tensor or not result.numel() or self._device.holds(result):
            return result
        storages = [one.untyped_storage().data_ptr() for one in region.tensors_of(list(args))]
        is_view = result.untyped_storage().data_ptr() in storages
        return result if is_view else self._device.moved(result)
