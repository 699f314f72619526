# SPDX-License-Identifier: Apache-2.0
"""Judge and contestant of timing together, on the CPU; the tests are their supervisor."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from fake_device import FakeDevice  # noqa: E402

from harness.worker import region
from harness.contestant.batches import Batches
from harness.judge.compare import TOLERANCES, Comparer
from harness.timing.fresh_inputs import FreshInputs
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
ALL_IN_PLACE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.mul_(2).t()
def get_inputs():
    return [torch.randn(8, 5)]
def get_init_inputs():
    return []
"""
Model = Callable[..., Any]


def honest(x: Any, index: Any, scale: Any, none: Any, flags: Any) -> Any:
    return (x * scale + 1, {"index": index - 1, "none": none.t(), "n": 3}, flags[0].any())


class Rig:
    """A judge, and one process beside it."""

    def __init__(self, source: str = TASK, seed: int = 1, calls: int = 4, late: int = 0) -> None:
        self.reference = Reference(Task(source), {}, 5)
        comparer = Comparer(TOLERANCES)
        self.fresh = FreshInputs(HOST_PLACE, self.reference, comparer, seed)
        self.device = FakeDevice()
        self.batches = Batches(self.device, HOST_PLACE)  # type: ignore[arg-type]
        self.calls = calls
        self.late = late  # Inputs in place of others, once a batch has begun.
        self.number = 0
        self.plan = self.ask("plan")
        self.shown = self.share("own")

    def ask(self, operation: str, descriptors: list[int] | None = None, **body: Any) -> Any:
        with torch.no_grad():
            answer = self.fresh.answer(operation, Question(json.loads(json.dumps(body))))
        if descriptors is not None:
            descriptors += answer.descriptors
        return json.loads(json.dumps(answer.body))

    def share(self, name: str) -> list[Any]:
        """Gives the contestant its memory; what it sees of each call's inputs."""
        found: list[int] = []
        inputs = self.ask("inputs", found, process=name, calls=self.calls, late=self.late)
        arena = self.ask("arena", found, process=name, nbytes=1 << 16)
        for what, body, descriptor in zip(("inputs", "arena"), (inputs, arena), found):
            self.batches.attach(what, Question({**body, "calls": self.calls}, [descriptor]))
        source = region.Mapping(found[0])
        shifted = [
            region.shifted(inputs["inputs"], i * inputs["stride"]) for i in range(self.calls)
        ]
        for descriptor in found:
            os.close(descriptor)
        return [region.unpack(tree, source) for tree in shifted]

    def draw(self, number: int, calls: int | None = None) -> list[bytes]:
        """What was drawn for each call."""
        calls = calls or self.calls
        self.ask("generate_inputs", number=number, calls=calls, late=self.late)
        assert self.fresh.private is not None
        memory = self.fresh.private.numpy().tobytes()
        return [memory[i * self.fresh.stride : (i + 1) * self.fresh.stride] for i in range(calls)]

    def publish(self, process: str = "own", calls: int | None = None) -> None:
        self.ask("publish_inputs", process=process, calls=calls or self.calls)

    def batch(self, model: Model) -> Any:
        """What is told of a host-synchronous batch's outputs."""
        self.number += 1
        question = {"number": self.number, "calls": self.calls, "enqueued": False}
        self.draw(self.number)
        self.batches.enqueue(model, Question(question))
        self.publish()
        self.device.gate = self.number
        return self.batches.finish(model).body["outputs"]

    def late_batch(self, model: Model, late: list[int]) -> Any:
        """As `batch`; after the first call of all, these get other inputs."""
        begun: list[Any] = []

        def counting(*inputs: Any) -> Any:
            outputs = model(*inputs)
            if not begun:
                self.ask("replace_inputs", process="own", calls=late)
            begun.append(None)
            return outputs

        return self.batch(counting)

    def snapshot(self, told: Any, picks: list[int], late: Sequence[int] = ()) -> None:
        """Has the judge copy the outputs of some calls."""
        wanted = [
            {"call": call, "place": told["places"][call], "late": call in late}
            for call in [*picks, *late]
        ]
        self.ask("snapshot_outputs", process="own", forms=told["forms"], picks=wanted)

    def verify(self, told: Any, picks: list[int]) -> Any:
        """ "" or what is wrong with the outputs of some calls."""
        self.snapshot(told, picks)
        return self.opinion()

    def opinion(self) -> Any:
        return self.ask("verify", process="own")["problem"]

    def problem(self, model: Model, picks: list[int] | None = None) -> Any:
        """What the judge says of a batch of a model's."""
        return self.verify(self.batch(model), picks or [self.calls - 1, 0])


def bytes_of(tensors: list[torch.Tensor]) -> list[bytes]:
    return [region.flat_bytes(tensor).numpy().tobytes() for tensor in tensors]
