#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the corpus is complete and consistent, without running any candidate.

    python3 tests/corpus/check_corpus.py

Every task has an honest candidate and the other way round; every mutant's edits apply exactly once
and change the file; the names are unique; every answer, hostile candidate and candidate for a GPU has its expectation.
Exit code 0 and one line if all is well; otherwise one line for each fault, and exit code 1.
"""

from __future__ import annotations

import ast
import json
import pathlib
import sys
from collections.abc import Iterator

CORPUS = pathlib.Path(__file__).resolve().parent
TASKS = CORPUS.parent.parent / "data/tasks"
OUTCOMES = {
    "pass",
    "extraction",
    "illegal",
    "compile",
    "runtime",
    "timeout",
    "oom",
    "wrong",
}
FAILURES = OUTCOMES - {"pass"}
FAMILIES = {
    "elementwise",
    "broadcast",
    "reduction",
    "normalisation",
    "softmax",
    "matmul",
    "convolution",
    "pooling",
    "indexing",
    "scan",
    "loss",
    "fusion",
}
CASE_MEMBERS = {
    "task",
    "file",
    "edits",
    "expect",
    "rules",
    "says",
    "finding",
    "line",
    "performance",
    "static_rules",
    "strict",
    "race_check",
    "note",
    "policy",
}
NUM_TASKS_MIN = 36
NUM_TASKS_A_FAMILY_MIN = 3
NUM_MUTANTS_MIN = 60
NUM_ANSWERS_MIN = 20
NUM_HOSTILE_MIN = 20
NUM_PTX_MIN = 4
NUM_RACES_MIN = 5
NUM_TRITON_MIN = 20
NUM_TRITON_MUTANTS_MIN = 40
NUM_WARP128_MIN = 20
NUM_GPU_MIN = 60
NUM_MUSA_PROGRAMS_MIN = 50
NUM_FORMS_MIN = 15


def names_below(folder: pathlib.Path) -> set[str]:
    return {p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.py")}


def defined_names(path: pathlib.Path) -> set[str]:
    """What the module defines or imports at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
    return names


def check_tasks(tasks: set[str]) -> Iterator[str]:
    if len(tasks) < NUM_TASKS_MIN:
        yield f"only {len(tasks)} tasks"
    for family in sorted(FAMILIES):
        count = sum(name.startswith(family + "/") for name in tasks)
        if count < NUM_TASKS_A_FAMILY_MIN:
            yield f"only {count} tasks of the family {family}"
    for name in sorted(tasks):
        if name.split("/")[0] not in FAMILIES:
            yield f"tasks/{name}.py: no such family"
        path = TASKS / (name + ".py")
        if "\nrequire_general = True\n" not in path.read_text(encoding="utf-8"):
            yield f"tasks/{name}.py: lacks require_general = True"
        missing = {"Model", "get_inputs", "get_init_inputs"} - defined_names(path)
        if missing:
            yield f"tasks/{name}.py: lacks {', '.join(sorted(missing))}"


def check_honest(tasks: set[str]) -> Iterator[str]:
    honest = names_below(CORPUS / "honest")
    for name in sorted(tasks - honest):
        yield f"{name}: a task without an honest candidate"
    for name in sorted(honest - tasks):
        yield f"honest/{name}.py: there is no such task"
    for name in sorted(honest & tasks):
        if "ModelNew" not in defined_names(CORPUS / "honest" / (name + ".py")):
            yield f"honest/{name}.py: lacks ModelNew"


def apply_edits(text: str, edits: list[dict[str, str]]) -> Iterator[str]:
    """Faults of the edits, applied one after the other."""
    original = text
    for edit in edits:
        count = text.count(edit["find"])
        if count != 1:
            yield f"an edit fits {count} times: {edit['find']!r}"
            return
        text = text.replace(edit["find"], edit["replace"])
    if text == original:
        yield "the edits change nothing"


def check_triton(tasks: set[str]) -> Iterator[str]:
    answers = names_below(CORPUS / "triton")
    if len(answers) < NUM_TRITON_MIN:
        yield f"triton: only {len(answers)} answers"
    for name in sorted(answers - tasks):
        yield f"triton/{name}.py: there is no such task"


def check_mutants(file: str, of: str, count_min: int) -> Iterator[str]:
    mutants = json.loads((CORPUS / f"{file}.json").read_text(encoding="utf-8"))
    if len(mutants) < count_min:
        yield f"{file}: only {len(mutants)} mutants"
    seen: set[str] = set()
    for mutant in mutants:
        name, honest = mutant["id"], mutant["of"]
        if name in seen:
            yield f"{name}: there are two of it"
        seen.add(name)
        if not name.startswith(honest + "/") or not mutant["kind"]:
            yield f"{name}: the name must begin with {honest}/, and the kind must be given"
        expected = set(mutant["expect"])
        if not expected or not expected <= FAILURES:
            yield f"{name}: expects {sorted(expected)}"
        if len(expected) > 1 and not mutant.get("note"):
            yield f"{name}: more than one outcome needs a note"
        path = CORPUS / of / (honest + ".py")
        if not path.is_file():
            yield f"{name}: there is no {honest}"
            continue
        for fault in apply_edits(path.read_text(encoding="utf-8"), mutant["edits"]):
            yield f"{name}: {fault}"


def check_expectations(folder: str, suffix: str, count_min: int, tasks: set[str]) -> Iterator[str]:
    path = CORPUS / folder / "expected.json"
    expected = json.loads(path.read_text(encoding="utf-8"))
    files = {p.name for p in (CORPUS / folder).glob("*" + suffix)}
    if len(files) < count_min:
        yield f"{folder}: only {len(files)} files"
    for name in sorted(files ^ set(expected)):
        yield f"{folder}/{name}: a file without an expectation, or the other way round"
    for name, entry in sorted(expected.items()):
        if entry["task"] not in tasks | names_below(CORPUS / folder / "tasks"):
            yield f"{folder}/{name}: there is no task {entry['task']}"
        if not entry["expect"] or not set(entry["expect"]) <= OUTCOMES:
            yield f"{folder}/{name}: expects {entry['expect']}"


def check_cases(folder: str, count_min: int, tasks: set[str]) -> Iterator[str]:
    """Cases that are edits of files, or the files as they are."""
    path = CORPUS / folder
    cases = json.loads((path / "expected.json").read_text(encoding="utf-8"))
    if len(cases) < count_min:
        yield f"{folder}: only {len(cases)} cases"
    files = {file.name for file in path.glob("*.py")}
    for file in sorted(files ^ {entry["file"] for entry in cases.values()}):
        yield f"{folder}/{file}: a file without a case, or the other way round"
    for name, entry in sorted(cases.items()):
        if entry["task"] not in tasks | names_below(path / "tasks"):
            yield f"{folder}/{name}: there is no task {entry['task']}"
        if not entry["expect"] or not set(entry["expect"]) <= {*OUTCOMES, "unsupported"}:
            yield f"{folder}/{name}: expects {entry['expect']}"
        unknown = set(entry) - CASE_MEMBERS
        if unknown:
            yield f"{folder}/{name}: what is {', '.join(sorted(unknown))}?"
        if "edits" in entry and entry["file"] in files:
            text = (path / entry["file"]).read_text(encoding="utf-8")
            for fault in apply_edits(text, entry["edits"]):
                yield f"{folder}/{name}: {fault}"


def all_faults() -> Iterator[str]:
    tasks = names_below(TASKS)
    yield from check_tasks(tasks)
    yield from check_honest(tasks)
    yield from check_mutants("mutants", "honest", NUM_MUTANTS_MIN)
    yield from check_triton(tasks)
    yield from check_mutants("triton_mutants", "triton", NUM_TRITON_MUTANTS_MIN)
    yield from check_expectations("answers", ".md", NUM_ANSWERS_MIN, tasks)
    yield from check_expectations("hostile", ".py", NUM_HOSTILE_MIN, tasks)
    yield from check_expectations("ptx", ".py", NUM_PTX_MIN, tasks)
    yield from check_expectations("races", ".py", NUM_RACES_MIN, tasks)
    yield from check_expectations("warp128", ".py", NUM_WARP128_MIN, tasks)
    yield from check_cases("gpu", NUM_GPU_MIN, tasks)
    yield from check_cases("forms", NUM_FORMS_MIN, tasks)
    yield from check_cases("musa_programs", NUM_MUSA_PROGRAMS_MIN, tasks)


def main() -> int:
    faults = list(all_faults())
    for fault in faults:
        print(fault)
    if not faults:
        print("the corpus is consistent")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
