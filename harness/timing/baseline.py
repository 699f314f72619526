# SPDX-License-Identifier: Apache-2.0
"""A baseline of timing: the task's own Model, run and timed as a candidate's is.

It never sees candidate code, so it comes from the judges' zygote, where no operator is missing.
"""

from __future__ import annotations

import gc

import torch

from harness.contestant.batches import Batches
from harness.contestant.contestant import Contestant
from harness.contestant.device import Device
from harness.worker import settings
from harness.worker.place import Place
from harness.worker.program import forget_module, name_model, run_module
from harness.worker.wire import TASK_FILE, Answer, Question


class Baseline(Contestant):
    """Answers `load` with a task's source, then what a contestant answers; and after `release`, of
    another task.
    """

    def __init__(self, place: Place, device: Device | None) -> None:
        super().__init__(None, place, device=device)
        self._class_name = "Model"

    def answer(self, question: Question) -> Answer:
        return self._release() if question.body["op"] == "release" else super().answer(question)

    def _load(self, question: Question) -> Answer:
        torch.set_grad_enabled(False)
        settings.provide()
        self._place.set_tf32(question.body["tf32"])
        self._module = run_module(question.body["source"], TASK_FILE)
        name_model(self._module)
        return Answer()

    def _release(self) -> Answer:
        """Gives back the memory of the last task, whose comparison is over."""
        forget_module(TASK_FILE)
        self._module, self._batches = None, None
        self._built.clear()
        gc.collect()  # A model may refer to itself.
        self._place.free_workspaces()
        if self._device is not None:
            self._device.close_arenas()
            self._batches = Batches(self._device, self._place)
        self._place.trim()
        return Answer()
