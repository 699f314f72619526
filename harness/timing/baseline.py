# SPDX-License-Identifier: Apache-2.0
"""A baseline of timing: the task's own Model, run and timed as a candidate's is.

It never sees candidate code, so it comes from the judges' zygote, where no operator is missing.
"""

from __future__ import annotations

import torch

from harness.contestant.contestant import Contestant
from harness.contestant.device import Device
from harness.worker.place import Place
from harness.worker.program import run_module
from harness.worker.wire import TASK_FILE, Answer, Question


class Baseline(Contestant):
    """Answers `load` with a task's source, then what a contestant answers."""

    def __init__(self, place: Place, device: Device | None) -> None:
        super().__init__(None, place, device=device)
        self._class_name = "Model"

    def _load(self, question: Question) -> Answer:
        torch.set_grad_enabled(False)
        self._module = run_module(question.body["source"], TASK_FILE)
        return Answer()
