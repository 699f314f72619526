# SPDX-License-Identifier: Apache-2.0
"""Takes every task of a suite through the judge, with the reference's own outputs as candidate.

  python harness/tests/check_tasks.py tasks
  python harness/tests/check_tasks.py level1.jsonl level2.jsonl [--only 3:12] [--verbose]

Each task runs in a process of its own; a line tells the shapes, the processor time and the peak
memory.
The exit status is 1 where a task fails.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import torch  # noqa: E402

from harness.judge import cost, judge  # noqa: E402
from harness.worker import region, wire  # noqa: E402
from harness.judge.reference import Outcome  # noqa: E402

MEMORY_MAX_MIB = 2048


def tasks_of(path: Path) -> Iterator[tuple[str, str]]:
    """(name, code) of each task in a JSON Lines file, a file, or a folder of files."""
    if path.suffix == ".jsonl":
        for line in path.read_text().splitlines():
            item = json.loads(line)
            yield f"{item['level']}:{item['problem_id']} {item['name']}", item["code"]
    elif path.is_dir():
        for file in sorted(path.rglob("*.py")):
            yield str(file.relative_to(path)), file.read_text()
    else:
        yield path.name, path.read_text()


def take_through(source: str) -> str:
    """A task's plan in words. Raises where a step fails or the reference disagrees with itself."""
    one = judge.Judge()
    start = time.process_time()
    one.answer(ask("open", source=source, options={}))
    plan = one.answer(ask("begin", seed=7)).body["plan"]
    opened = time.process_time() - start
    built = -1
    for trial in plan["trials"]:
        if trial["shape"] != built:
            built = trial["shape"]
            close(one.answer(ask("init", shape=built)))
        given = one.answer(ask("trial", index=trial["index"]))
        leave_inputs(given, one._opened.given[trial["index"]].outcome)  # type: ignore[union-attr]
        outcome = one._opened.given[trial["index"]].outcome  # type: ignore[union-attr]
        returned = (outcome.outputs, outcome.written)
        entries, descriptor = region.pack_named([("", returned), *outcome.buffers.items()])
        question = ask(
            "check", index=trial["index"], outputs=entries[0]["tree"], buffers=entries[1:]
        )
        verdict = one.answer(wire.Question(question.body, [descriptor])).body
        os.close(descriptor)
        close(given)
        if not verdict["passed"]:
            raise AssertionError(f"trial {trial}: {json.dumps(verdict)[:400]}")
    return describe(plan, opened, time.process_time() - start)


def leave_inputs(given: wire.Answer, outcome: Outcome) -> None:
    """Does to the shared inputs what the reference does to its own."""
    source = region.Mapping(given.descriptors[0])
    nodes = region.tensor_nodes(given.body["inputs"])
    for node, after in zip(nodes, region.tensors_of(outcome.inputs_after)):
        region.unpack(node, source).copy_(after)


def describe(plan: wire.Json, opened: float, whole: float) -> str:
    labels = "+".join(shape["label"] for shape in plan["shapes"])
    names = [t["distribution"] for t in plan["trials"] if t["shape"] == 0]
    reduction = plan["shapes"][0]["reduction"]
    text = f"{labels} {','.join(names)} open {opened:.2f} s, all {whole:.2f} s"
    if reduction:
        changed = {k: v for k, v in reduction["used"].items() if v != reduction["native"][k]}
        text += f"; {reduction['reason']} {changed}"
    for shape in plan["shapes"][1:]:
        base = plan["shapes"][0]["constants"]
        text += f"; {shape['label']} " + str(
            {k: v for k, v in shape["constants"].items() if v != base[k]}
        )
    return text


def ask(op: str, **fields: Any) -> wire.Question:
    return wire.Question({"op": op, **fields}, [])


def close(answer: wire.Answer) -> None:
    for descriptor in answer.descriptors:
        os.close(descriptor)


def run_one(name: str, source: str, results: Any) -> None:
    try:
        text, good = take_through(source), True
    except BaseException as error:
        text, good = f"{type(error).__name__}: {str(error)[:400]}", False
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    good = good and peak < MEMORY_MAX_MIB
    results.send((good, f"{'ok  ' if good else 'FAIL'} {name}: {peak} MiB {text}"))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("suites", nargs="+", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cost.warm_up()
    failed = 0
    for suite in arguments.suites:
        for name, source in tasks_of(suite):
            if not name.startswith(arguments.only):
                continue
            mine, theirs = multiprocessing.Pipe(False)
            process = multiprocessing.get_context("fork").Process(
                target=run_one, args=(name, source, theirs)
            )
            process.start()
            theirs.close()
            try:
                good, line = mine.recv()
            except EOFError:
                good, line = False, f"FAIL {name}: the process died"
            process.join()
            failed += not good
            print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
