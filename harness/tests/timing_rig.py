# SPDX-License-Identifier: Apache-2.0
"""Judge and contestant of timing together, on the CPU; the tests are their supervisor."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from fake_device import FakeDevice  # noqa: E402

from harness.worker import region
from harness.contestant.bursts import Bursts
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
    """A judge, and one arm with a contestant."""

    def __init__(self, source: str = TASK, seed: int = 1, calls: int = 4) -> None:
        self.reference = Reference(Task(source), {}, 5)
        comparer = Comparer(TOLERANCES)
        self.fresh = FreshInputs(HOST_PLACE, self.reference, comparer, seed)
        self.device = FakeDevice()
        self.bursts = Bursts(self.device, HOST_PLACE)  # type: ignore[arg-type]
        self.calls = calls
        self.number = 0
        self.plan = self.ask("plan")
        self.shown = self.open_arm("arm")

    def ask(self, operation: str, descriptors: list[int] | None = None, **body: Any) -> Any:
        with torch.no_grad():
            answer = self.fresh.answer(operation, Question(json.loads(json.dumps(body))))
        if descriptors is not None:
            descriptors += answer.descriptors
        return json.loads(json.dumps(answer.body))

    def open_arm(self, name: str) -> list[Any]:
        """Gives the contestant its memory; what it sees of each call's inputs."""
        found: list[int] = []
        inputs = self.ask("inputs", found, arm=name, calls=self.calls)
        arena = self.ask("arena", found, arm=name, nbytes=1 << 16)
        for what, body, descriptor in zip(("inputs", "arena"), (inputs, arena), found):
            self.bursts.attach(Question({**body, "what": what, "calls": self.calls}, [descriptor]))
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
        self.ask("draw", number=number, calls=calls)
        assert self.fresh.private is not None
        memory = self.fresh.private.numpy().tobytes()
        return [memory[i * self.fresh.stride : (i + 1) * self.fresh.stride] for i in range(calls)]

    def reveal(self, arm: str = "arm", calls: int | None = None) -> None:
        self.ask("reveal", arm=arm, calls=calls or self.calls)

    def burst(self, model: Model) -> Any:
        """What is told of an open burst's outputs."""
        self.number += 1
        question = {"number": self.number, "calls": self.calls, "gated": False}
        self.draw(self.number)
        self.bursts.queue(model, Question(question))
        self.reveal()
        self.device.gate = self.number
        return self.bursts.finish(model).body["outputs"]

    def look(self, told: Any, picks: list[int]) -> None:
        """Has the judge look at the outputs of some calls."""
        wanted = [{"call": call, "place": told["places"][call]} for call in picks]
        self.ask("look", arm="arm", forms=told["forms"], picks=wanted)

    def verify(self, told: Any, picks: list[int]) -> Any:
        """ "" or what is wrong with the outputs of some calls."""
        self.look(told, picks)
        return self.opinion()

    def opinion(self) -> Any:
        answer = self.ask("verify", arm="arm")
        assert answer["passed"] == (answer["problem"] == "")
        return answer["problem"]

    def problem(self, model: Model, picks: list[int] | None = None) -> Any:
        """What the judge says of a burst of a model's."""
        return self.verify(self.burst(model), picks or [self.calls - 1, 0])


def bytes_of(tensors: list[torch.Tensor]) -> list[bytes]:
    return [region.flat_bytes(tensor).numpy().tobytes() for tensor in tensors]
