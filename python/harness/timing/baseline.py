# SPDX-License-Identifier: Apache-2.0
"""A compiled baseline of timing: the task's own Model under torch.compile.

It never sees candidate code, so it is forked from the judges' zygote, where no operator is removed.
It is its own process, since torch.compile starts compilers.
"""

from __future__ import annotations

import torch

from harness.candidate.process import CandidateProcess
from harness.timing.timed_calls import TimedCalls
from harness.worker import region, settings
from harness.worker.place import Place
from harness.worker.program import name_model, run_module
from harness.worker.wire import TASK_FILE, Answer, Question


class Baseline(CandidateProcess):
    """Responds to `load` with a task's source, then to the same requests as a candidate process."""

    def __init__(self, place: Place, executor_library: str) -> None:
        super().__init__(place)
        self._class_name = "Model"
        self._timed = TimedCalls(executor_library, place)

    def answer(self, question: Question) -> Answer:
        if question.body["op"] == "time_calls":
            return self._time_calls(question)
        return super().answer(question)

    def _load(self, question: Question) -> Answer:
        torch.set_grad_enabled(False)
        settings.provide()
        self._place.set_tf32(question.body["tf32"])
        self._module = run_module(question.body["source"], TASK_FILE)
        name_model(self._module)
        return Answer()

    def _time_calls(self, question: Question) -> Answer:
        body, built = question.body, self._built_at(0, "time")
        source = self._place.memory.mapping(question.descriptors[0])
        given = [
            region.unpack(region.shifted(body["inputs"], number * body["stride"]), source)
            for number in range(body["calls"])
        ]
        gated = body["is_gated"]
        found = self._timed.time(built.model, given.__getitem__, len(given), is_gated=gated)
        return Answer(found)
