# SPDX-License-Identifier: Apache-2.0
"""A baseline of timing: the task's own Model, timed under the stopwatch that candidates have.

It never sees candidate code, so it comes from the judges' zygote, where no operator is missing.
"""

from __future__ import annotations

import gc
from typing import Any

import torch

from harness.candidate.process import CandidateProcess
from harness.timing.stopwatch import Stopwatch
from harness.worker import region, settings
from harness.worker.place import Place
from harness.worker.program import call, forget_module, name_model, run_module
from harness.worker.wire import TASK_FILE, Answer, Question, Refusal


class Baseline(CandidateProcess):
    """Answers `load` with a task's source, then what a candidate process answers; and after
    `release`, of another task.
    """

    def __init__(self, place: Place, executor_library: str) -> None:
        super().__init__(None, place)
        self._class_name = "Model"
        self._executor_library = executor_library
        self._stopwatch: Stopwatch | None = None

    def answer(self, question: Question) -> Answer:
        operations = {
            "release": lambda _: self._release(),
            "time_calls": self._time_calls,
            "measure_memory": self._measure_memory,
        }
        return operations.get(question.body["op"], super().answer)(question)

    def _load(self, question: Question) -> Answer:
        torch.set_grad_enabled(False)
        settings.provide()
        self._place.set_tf32(question.body["tf32"])
        self._module = run_module(question.body["source"], TASK_FILE)
        name_model(self._module)
        return Answer()

    def _time_calls(self, question: Question) -> Answer:
        """Calls as a device process times those of a candidate (device/cuda/timed_batch.h)."""
        body, built = question.body, self._built.get(0)
        if built is None:
            raise Refusal("protocol", "time before build")
        if self._stopwatch is None:
            self._stopwatch = Stopwatch(self._executor_library, self._place)
        source = self._place.memory.mapping(question.descriptors[0])
        given = [self._inputs_of(body, number, source) for number in range(body["calls"])]
        places = [region.map_tensors(one, torch.clone) for one in given[:2]]
        self._stopwatch.reset()
        for number, inputs in enumerate(given):
            place = places[number % 2]
            for seen, tensor in zip(region.tensors_of(place), region.tensors_of(inputs)):
                seen.copy_(tensor)
            self._stopwatch.begin(is_gated=body["is_gated"])
            call(built.model, place)
            self._stopwatch.end()
        times = self._stopwatch.times(body["calls"])
        return Answer(
            {"us": [us for us, _ in times], "queued_whole": sum(whole for _, whole in times)}
        )

    def _measure_memory(self, question: Question) -> Answer:
        """The memory of a call, as a device process counts that of a candidate."""
        built = self._built.get(0)
        if built is None:
            raise Refusal("protocol", "memory before build")
        source = self._place.memory.mapping(question.descriptors[0])
        inputs = region.unpack(question.body["inputs"], source)
        peak = self._place.peak_bytes(lambda: call(built.model, inputs))
        return Answer({"memory_bytes": peak})

    @staticmethod
    def _inputs_of(body: Any, number: int, source: region.Source) -> Any:
        return region.unpack(region.shifted(body["inputs"], number * body["stride"]), source)

    def _release(self) -> Answer:
        """Gives back the memory of the last task, whose comparison is over."""
        forget_module(TASK_FILE)
        self._module = None
        self._built.clear()
        gc.collect()  # A model may refer to itself.
        self._place.free_workspaces()
        self._place.trim()
        return Answer()
