# SPDX-License-Identifier: Apache-2.0
"""Where the outputs of a batch's calls lie, in few words.

While the process of a host-synchronous batch tells it, the supervisor's clock runs
(docs/timing.md). Calls return the same as a rule, but for where it lies. So each different *form*
is told once, a tree without offsets, and for each call its *place*: the number of its form, and
then where each tensor begins. Contestants describe them (`described`), the judge reads (`read`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch

from harness.worker import region
from harness.worker.wire import Json, Refusal

NOWHERE = -1


class Memories:
    """Memories that contestant and judge map, counted one behind the other; a region.Source."""

    def __init__(self, *memories: torch.Tensor | None) -> None:
        self._memories = [memory for memory in memories if memory is not None]
        self.device = self._memories[0].device if self._memories else region.CPU
        # Beginning and end of each here, and what is counted before it.
        self._spans: list[tuple[int, int, int]] = []
        counted = 0
        for memory in self._memories:
            begin = memory.data_ptr()
            self._spans.append((begin, begin + memory.numel(), counted))
            counted += memory.numel()

    def offset_of(self, tensor: torch.Tensor) -> int:
        """NOWHERE for what lies elsewhere, but 0 if it has no elements."""
        address = tensor.data_ptr()
        for begin, end, counted in self._spans:
            if begin <= address < end:
                return counted + address - begin
        return NOWHERE if tensor.numel() else 0

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int = 0) -> torch.Tensor:
        for memory in self._memories:
            if offset + nbytes <= memory.numel():
                return memory[offset : offset + nbytes]
            if offset < memory.numel():
                break
            offset -= memory.numel()
        raise Refusal("protocol", "a tensor lies outside its memory")


def described(outputs: Sequence[Any], visible: Sequence[Any], memories: Memories) -> Json:
    """`{"forms", "places"}` of what each call returned, and where the judge sees it."""
    forms: list[Json] = []
    numbers: dict[Hashable, int] = {}
    places: list[list[int]] = []
    for output, shown in zip(outputs, visible, strict=True):
        key = _key(shown), tuple(tensor.device for tensor in region.tensors_of(output))
        number = numbers.get(key)
        if number is None:
            number = numbers[key] = len(forms)
            forms.append(_form(output, shown))
        places.append([number, *map(memories.offset_of, region.tensors_of(shown))])
    return {"forms": forms, "places": places}


def read(forms: Any, place: Any, memories: Memories, bytes_max: int) -> Any:
    """What lies at a place, of so many bytes at most. Refusal("protocol") for nonsense."""
    try:
        number, *offsets = place
        form = forms[number]
    except (TypeError, ValueError, LookupError):
        raise Refusal("protocol", "a place names no form") from None
    return region.unpack(form, memories, bytes_max, offsets)


def _form(output: Any, shown: Any) -> Json:
    """With the devices on which the outputs were, before some were copied to be seen."""
    form = region.form_of(shown)
    for node, tensor in zip(region.tensor_nodes(form), region.tensors_of(output), strict=True):
        node["device"] = tensor.device.type
    return form


def _key(value: Any) -> Hashable:
    """Equal for two values of one form only."""
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, value.shape, value.stride()
    if isinstance(value, dict):
        return dict, tuple((type(key), key, _key(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return isinstance(value, list), tuple(_key(item) for item in value)
    return type(value), repr(value)
