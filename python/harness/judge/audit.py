# SPDX-License-Identifier: Apache-2.0
"""Runs a candidate once at each of a task's small sizes, for a sanitizer to watch.

  audit.py QUESTION.json

QUESTION is {"task", "source", "artifacts", "aten", "seed", "device", "mode", "precision"}. Nothing
is compared here: only the sanitizer's findings count, so this process may have both the reference
and the candidate. It runs in the sandbox, below compute-sanitizer, which makes every kernel 10 to
100 times slower; hence the sizes are those of the CPU backend. Each tensor has its own allocation
of exact size, so that the sanitizer detects an access directly behind it.

On standard output: "audit: cannot: why" and exit code 3 if the task itself cannot be run, before
any candidate code; otherwise "audit: done, N of M" as the last line, N being the number of shapes
at which the candidate ran, and exit code 0. An exception of the candidate is ignored: it may refuse
sizes for which it was not made, and after a fault the device refuses everything.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
sys.path[:] = [str(Path(__file__).resolve().parent.parent.parent)] + [
    entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent
]

import torch  # noqa: E402

from harness.judge import distributions  # noqa: E402
from harness.worker import region  # noqa: E402
from harness.worker.backends import BACKENDS  # noqa: E402
from harness.candidate.aten import AtenRecorder  # noqa: E402
from harness.candidate.process import CandidateProcess  # noqa: E402
from harness.worker.place import Place  # noqa: E402
from harness.judge.reference import Reference, derive_seed  # noqa: E402
from harness.judge.shapes import Options, Shape, ShapePlanner  # noqa: E402
from harness.judge.task import Task  # noqa: E402
from harness.judge.task_code import attempt  # noqa: E402
from harness.worker.wire import Json, Question, Refusal  # noqa: E402

CANNOT = 3
TEXT_MAX = 300


class Allocations:
    """Regions as allocations, one for each tensor (a region.Memory and its region.Source).

    A tensor's offset is its number times the alignment of offsets; descriptors are unused.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._held: list[torch.Tensor] = []

    def write(self, tensors: Sequence[tuple[Json, torch.Tensor]]) -> int:
        for node, tensor in tensors:
            node["offset"] = len(self._held) * region.ALIGNMENT
            node["device"] = tensor.device.type
            self._held.append(region.flat_bytes(tensor).clone())
        return -1

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int) -> torch.Tensor:
        return self._held[offset // region.ALIGNMENT].clone()

    def mapping(self, descriptor: int) -> Allocations:
        return self

    def snapshot(self, descriptor: int, bytes_max: int) -> Allocations:
        return self

    def reserve(self, nbytes: int) -> tuple[torch.Tensor, int]:
        raise Refusal("protocol", "an audit times nothing")


def main() -> int:
    question = json.loads(Path(sys.argv[1]).read_text())
    torch.set_grad_enabled(False)
    place = _place(str(question["device"]))
    try:
        cases = list(_cases(question, place))
    except Exception as error:
        why = str(error) if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"
        print(f"audit: cannot: {why}"[:TEXT_MAX], flush=True)
        return CANNOT
    num = _run_all(question, cases, place)
    print(f"audit: done, {num} of {len(cases)}", flush=True)
    return 0


def _place(backend: str) -> Place:
    device = BACKENDS[backend].open_device()
    return Place(device, Allocations(device), lambda tree, tensors: "")


def _cases(question: Json, place: Place) -> Iterator[tuple[Shape, Reference, list[Any]]]:
    """The main shape, and the variants at which the reference runs."""
    task = Task(str(question["task"]))
    planner = ShapePlanner(task, Options())
    main_shape = planner.main()
    yield _case(task, main_shape, question, place)
    labels = set()
    for shape in planner.variants(main_shape):
        if shape.label in labels:
            continue
        found = attempt(_case, task, shape, question, place)
        if found is not None:
            labels.add(shape.label)
            yield found


def _case(
    task: Task, shape: Shape, question: Json, place: Place
) -> tuple[Shape, Reference, list[Any]]:
    seed, precision = int(question["seed"]), str(question["precision"])
    reference = Reference(
        task, shape.bound, derive_seed(seed, shape.label), place.device, precision
    )
    if question["mode"] == "eval":
        reference.model.eval()
    inputs = reference.draw_inputs(derive_seed(seed, "inputs"), distributions.NATIVE)
    reference.run(inputs, 0)
    return shape, reference, inputs


def _run_all(question: Json, cases: list[tuple[Shape, Reference, list[Any]]], place: Place) -> int:
    """The number of shapes at which the candidate ran to its end."""
    if question["aten"]:  # The extensions were linked without it.
        AtenRecorder.load(str(question["aten"]))
    candidate = CandidateProcess(place)
    load = {"op": "load", "source": question["source"], "artifacts": question["artifacts"]}
    load["policy"] = {"name": "", "device_allowed": [], "host_allowed": [], "init_allowed": []}
    load["schedule_seed"] = 0
    if not _tries("load", candidate, load):
        return 0
    questions = []  # All models first: the first run removes __init__'s operators.
    for number, (shape, reference, inputs) in enumerate(cases):
        values: list[tuple[str, object]] = [("", reference.init)]
        entries, _ = region.pack_named(
            [*values, *region.state_of(reference.model).items()], place.memory
        )
        build = {
            "op": "build",
            "shape": number,
            "init": entries[0]["tree"],
            "init_seed": reference.init_seed,
            "constants": reference.constants.noted,
            "training": reference.model.training,
            "precision": question["precision"],
            "state": entries[1:],
        }
        if _tries(shape.label, candidate, build):
            run = {"op": "run", "shape": number, "written": []}
            run["inputs"] = region.pack(inputs, place.memory)[0]
            questions.append((shape, run))
    num = 0
    for shape, run in questions:
        print(f"audit: {shape.label} {dict(shape.constants)}", flush=True)
        num += _tries(shape.label, candidate, run)
    return num


def _tries(what: str, candidate: CandidateProcess, body: Json) -> bool:
    try:
        candidate.answer(Question(body, [os.open(os.devnull, os.O_RDONLY)]))
    except BaseException as error:  # A candidate may raise anything.
        print(f"audit: {what}: {type(error).__name__}: {error}"[:TEXT_MAX], flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
