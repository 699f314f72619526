# SPDX-License-Identifier: Apache-2.0
"""The constructor arguments of a task's models: `get_init_inputs` at every size that may be judged.

They are found without a device, a reference or a secret seed, so that a candidate can be prepared
anywhere. The judge uses the sizes at which the reference runs (shapes.py).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from typing import Any

import torch

from harness.judge import task_code
from harness.judge.shapes import Options, ShapePlanner
from harness.judge.task import Task
from harness.worker import region
from harness.worker.precision import cast
from harness.worker.wire import Answer, Question


def answer(question: Question) -> Answer:
    """The response to `initials`: the arguments at the main size, then all that differ from
    them.
    """
    options = Options(**question.body["options"])
    task = Task(str(question.body["source"]))
    planner = ShapePlanner(task, options)
    main = planner.main()
    first = _initial(task, main.bound, options.precision)
    found = {_digest_of(first): first}
    # A candidate that does not support reduced sizes needs the task's own sizes.
    others = [shape.bound for shape in planner.variants(main)] if options.shapes else []
    for bound in [*others, {}]:
        init = task_code.attempt(_initial, task, bound, options.precision)
        if init is not None:  # Otherwise the judge will fail, too.
            found.setdefault(_digest_of(init), init)
    named = [(str(number), init) for number, init in enumerate(found.values())]
    with region.must_pass("get_init_inputs"):
        entries, descriptor = region.pack_named(named)
    # All candidates of the task share one region, so none may write to it.
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL)
    return Answer({"initials": [entry["tree"] for entry in entries]}, [descriptor])


def _initial(task: Task, bound: Mapping[str, int], precision: str) -> list[Any]:
    torch.default_generator.manual_seed(0)
    with task.running(region.CPU):
        init: list[Any] = cast(task_code.init_of(task.run(bound)), precision)
        return init


def _digest_of(init: list[Any]) -> str:
    """The same for the same arguments."""
    with region.must_pass("get_init_inputs"):
        tree, descriptor = region.pack(init)
    os.close(descriptor)
    return region.digest(tree, region.tensors_of(init))
