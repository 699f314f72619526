# SPDX-License-Identifier: Apache-2.0
"""What a task's models are built from: `get_init_inputs` at every size at which it may be judged.

Found without a device, a reference or a secret seed, so that a candidate can be prepared anywhere.
Of these sizes the judge takes those at which the reference runs (shapes.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import io
from collections.abc import Mapping

import torch

from harness.judge.shapes import Options, ShapePlanner
from harness.judge.task import Task
from harness.worker import region
from harness.worker.precision import cast
from harness.worker.wire import Answer, Question, set_stage


def answer(question: Question) -> Answer:
    """To `initials`: the arguments at the main size first, then all that differ from them."""
    options = Options(**question.body["options"])
    try:
        task = Task(str(question.body["source"]))
        planner = ShapePlanner(task, options)
        main = planner.main()
        first = _initial(task, main.bound, options.precision)
        found = {_bytes_of(first): first}
        # The task's own sizes count where a candidate is not made for reduced ones.
        others = [shape.bound for shape in planner.variants(main)] if options.shapes else []
        for bound in [*others, {}]:
            with contextlib.suppress(Exception):  # The judge will not get further either.
                init = _initial(task, bound, options.precision)
                found.setdefault(_bytes_of(init), init)
    except Exception as error:
        set_stage(error, "reference")
        raise
    named = [(str(number), init) for number, init in enumerate(found.values())]
    entries, descriptor = region.pack_named(named)
    # One region serves all candidates of the task, none of which may write to it.
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL)
    return Answer({"initials": [entry["tree"] for entry in entries]}, [descriptor])


def _initial(task: Task, bound: Mapping[str, int], precision: str) -> list[object]:
    torch.default_generator.manual_seed(0)
    return list(cast(list(task.run(bound).get_init_inputs()), precision))


def _bytes_of(init: list[object]) -> bytes:
    """The same for the same arguments."""
    file = io.BytesIO()
    torch.save(init, file)
    return file.getvalue()
