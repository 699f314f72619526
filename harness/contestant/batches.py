# SPDX-License-Identifier: Apache-2.0
"""The contestant's side of timing: batches of calls, each on inputs of its own.

A batch is enqueued behind a gate that the supervisor opens, after the judge has published inputs. A
forward that waits for the device cannot be enqueued; its batches are *host-synchronous*: they run
once the gate opens. `docs/timing.md` tells what is believed of all this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.worker import output_places, region
from harness.contestant.device import Device
from harness.worker.output_places import NOWHERE, Memories
from harness.worker.place import Place
from harness.worker.program import call
from harness.worker.wire import Answer, Json, Question, Refusal

Model = Callable[..., Any]
KERNELS_MAX = 64


@dataclass
class _Batch:
    """One batch on its way."""

    number: int
    calls: int
    enqueued: bool
    outputs: list[Any] = field(default_factory=list)
    visible: list[Any] = field(default_factory=list)  # The outputs, where the judge sees them.


class Batches:
    """Answers `gate`, `inputs` and `arena`, which the judge shares; then `enqueue` and `finish` by
    turns.
    """

    def __init__(self, device: Device, place: Place) -> None:
        self._device = device
        self._place = place
        self._inputs: list[Any] = []
        self._written: torch.Tensor | None = None  # The inputs' memory, if outputs may lie there.
        self._arena: torch.Tensor | None = None
        self._memories = Memories()
        self._batch: _Batch | None = None

    def attach(self, what: str, question: Question) -> Answer:
        """Takes what the judge shares: inputs, arena, or the gate's page."""
        body, descriptor = question.body, question.descriptors[0]
        self._batch = None
        if what == "gate":
            self._device.attach_gate(descriptor)
            return Answer()
        source = self._place.memory.mapping(descriptor)
        memory = source.bytes_of(0, body["nbytes"], body["nbytes"])
        if what == "arena":
            self._arena = memory
            self._device.open_arena(self._arena, self._place)
        else:
            self._written = memory if body["in_place"] else None
            self._inputs = [
                region.unpack(region.shifted(body["inputs"], number * body["stride"]), source)
                for number in range(body["calls"])
            ]
        self._memories = Memories(self._arena, self._written)
        return Answer()

    def enqueue(self, model: Model, question: Question) -> Answer:
        """Enqueues a batch; only notes a host-synchronous one."""
        body = question.body
        self._batch = None  # Its outputs' memory is used again.
        batch = _Batch(body["number"], body["calls"], body["enqueued"])
        if batch.calls > len(self._inputs) or self._arena is None:
            raise Refusal("protocol", "enqueue before attach")
        if batch.enqueued:
            self._run(batch, model, self._device.close_gate)
        self._batch = batch
        return Answer(self._layout(batch) if batch.enqueued else {})

    def finish(self, model: Model) -> Answer:
        """Runs a host-synchronous batch, waits for the device, and tells what the events said."""
        batch = self._batch
        if batch is None:
            raise Refusal("protocol", "finish before enqueue")
        if not batch.enqueued:
            self._run(batch, model, self._device.await_gate)
        body: Json = {"events_us": self._device.finish(batch.number)}
        trace = self._device.take_trace()
        if trace:
            body.update({"busy_us": trace["busy_us"], "kernels": _summary(trace["kernels"])})
        return Answer(body if batch.enqueued else {**body, **self._layout(batch)})

    def _run(self, batch: _Batch, model: Model, begin: Callable[[int], None]) -> None:
        with self._device.pool():
            begin(batch.number)
            batch.outputs = [call(model, inputs) for inputs in self._inputs[: batch.calls]]
            batch.visible = [region.map_tensors(one, self._visible) for one in batch.outputs]
            self._device.end()

    def _visible(self, tensor: torch.Tensor) -> torch.Tensor:
        """What lies elsewhere is copied to where the judge can see it, inside the batch."""
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or self._shows(tensor):
            return tensor
        assert self._arena is not None
        plain = tensor.detach().resolve_conj().resolve_neg()
        return plain.to(self._arena.device, copy=True)

    def _shows(self, tensor: torch.Tensor) -> bool:
        """Whether the judge sees the tensor, which is not to be read with another sign."""
        is_seen = self._memories.offset_of(tensor) != NOWHERE
        return is_seen and not tensor.is_conj() and not tensor.is_neg()

    def _layout(self, batch: _Batch) -> Json:
        """Where each call's outputs lie."""
        return {"outputs": output_places.described(batch.outputs, batch.visible, self._memories)}


def _summary(kernels: list[Json]) -> list[Json]:
    """One entry for all launches of a kernel that are alike, longest first."""
    alike: dict[str, Json] = {}
    for kernel in kernels:
        us, early, late = kernel.pop("us"), kernel.pop("early"), kernel.pop("late")
        sums = {"launches": 0, "us": 0.0, "early": 0, "late": 0}
        entry = alike.setdefault(repr(kernel), {**kernel, **sums})
        entry["launches"] += 1
        entry["us"] += us
        entry["early"] += int(early)
        entry["late"] += int(late)
    return sorted(alike.values(), key=lambda entry: -float(entry["us"]))[:KERNELS_MAX]
