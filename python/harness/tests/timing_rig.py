# SPDX-License-Identifier: Apache-2.0
"""The judge's side of timing on the CPU; the tests act as supervisor and candidate."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from harness.worker import region
from harness.judge.compare import TOLERANCES, Comparer
from harness.timing.fresh_inputs import FreshInputs
from harness.timing.timed_calls import TimedCalls
from harness.worker.place import HOST_PLACE
from harness.judge.reference import Reference
from harness.judge.task import Task
from harness.worker.wire import Question

TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, index, scale, none, flags):
        return (x * scale + 1, {"index": index - 1, "none": none.t(), "n": 3}, flags[0].any())
def get_inputs():
    return [torch.randn(5, 3), torch.randint(0, 1 << 40, (7,)), 2.5, torch.empty(0, 4),
            [torch.rand(11) < 0.5]]
def get_init_inputs():
    return []
"""
IN_PLACE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        x.mul_(2)
        return x + y
def get_inputs():
    return [torch.randn(40), torch.randn(40)]
def get_init_inputs():
    return []
"""
Model = Callable[..., Any]


def honest(x: Any, index: Any, scale: Any, none: Any, flags: Any) -> Any:
    return (x * scale + 1, {"index": index - 1, "none": none.t(), "n": 3}, flags[0].any())


class Rig:
    """A judge with memory for some calls."""

    def __init__(self, source: str = TASK, seed: int = 1, calls: int = 4) -> None:
        self.reference = Reference(Task(source), {}, 5)
        self.fresh = FreshInputs(
            HOST_PLACE, self.reference, Comparer(TOLERANCES), seed, TimedCalls("", HOST_PLACE)
        )
        self.calls = calls
        self.plan = self.ask("plan")
        self.shown = self.share()

    def ask(self, operation: str, given: Sequence[int] = (), **body: Any) -> Any:
        with torch.no_grad():
            question = Question(json.loads(json.dumps(body)), [*given])
            answer = self.fresh.answer(operation, question)
        self.found = answer.descriptors
        return json.loads(json.dumps(answer.body))

    def share(self) -> list[Any]:
        """Each call's inputs, read through the shared descriptor."""
        shared = self.ask("share", calls=self.calls)
        source = region.Mapped(self.found[0])
        os.close(self.found[0])
        return [
            region.unpack(region.shifted(shared["inputs"], i * shared["stride"]), source)
            for i in range(self.calls)
        ]

    def draw(self, number: int, calls: int | None = None) -> list[bytes]:
        """The inputs that were drawn for each call."""
        calls = calls or self.calls
        self.ask("generate_inputs", number=number, calls=calls)
        assert self.fresh.private is not None
        memory = self.fresh.private.numpy().tobytes()
        return [memory[i * self.fresh.stride : (i + 1) * self.fresh.stride] for i in range(calls)]

    def call_with_writes(self, model: Model, call: int) -> Any:
        """A candidate call's outputs, with its writes to inputs."""
        inputs = region.map_tensors(self.shown[call], torch.clone)
        outputs = model(*inputs)
        tensors = region.tensors_of(inputs)
        return outputs, [tensors[number] for number in self.plan["written"]]

    def opinion(self, returned: object, call: int) -> Any:
        """The judge's check of the claimed outputs of a call."""
        tree, descriptor = region.pack(returned)
        return self.opinion_of_tree(tree, descriptor, call)

    def opinion_of_tree(self, tree: Any, descriptor: int, call: int) -> Any:
        try:
            return self.ask("check", [descriptor], call=call, outputs=tree)["problem"]
        finally:
            os.close(descriptor)

    def problem(self, model: Model, call: int = 0) -> Any:
        """The judge's complaint about a call of a model."""
        self.draw(7)
        return self.opinion(self.call_with_writes(model, call), call)


def bytes_of(tensors: list[torch.Tensor]) -> list[bytes]:
    return [region.flat_bytes(tensor).numpy().tobytes() for tensor in tensors]
