#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the findings of the race check beside a GPU, and its cost.

    python3 lab/gpu/race_check.py [--jobs N] [--out FILE] tests/corpus/honest
    python3 lab/gpu/race_check.py --task TASK [--jobs N] [--out FILE] FOLDER
    python3 lab/gpu/race_check.py [--suite SUITE] [--jobs N] [--out FILE] ANSWERS.jsonl

Judges the candidates by `--backend cuda` with `--race-check off`, then on, under the same seed. A
run before both fills the cache, so that neither compiles. Without --task a file's place in the
folder names its task: reduction/row_sum.py. It prints each candidate whose outcome differs or that
was not checked, the outcomes of both runs, verdicts a minute (with the start of the program) and
the seconds of the checks. Options behind `--` are those of `musacoder eval`.
"""

from __future__ import annotations

import argparse
import collections
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import table

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from expectation import Json, kinds_in  # noqa: E402

SEED = "1"
HEADS = ("race check", "verdicts", "a minute", "check s, median", "check s, longest", "waited s")


@dataclass(frozen=True)
class Run:
    """The verdicts of one run, by candidate, and the seconds that it took with its start."""

    verdicts: dict[str, Json]
    seconds: float


def judged(musacoder: str, mode: str, options: Sequence[str]) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.jsonl"
        command = [musacoder, "eval", "--backend", "cuda", "--race-check", mode, "--seed", SEED]
        start = time.monotonic()
        subprocess.run([*command, "--out", str(results), *options], check=True, stdout=sys.stderr)
        seconds = time.monotonic() - start
        verdicts = [json.loads(line)["verdict"] for line in results.read_text().splitlines()]
    return Run({f"{one['task']} {one['candidate']}": one for one in verdicts}, seconds)


def answers_of(folder: Path) -> str:
    """Lines of JSON for the candidates of a folder, each with the task that its place names."""
    lines = []
    for path in sorted(folder.rglob("*.py")):
        task = str(path.relative_to(folder).with_suffix(""))
        lines.append(json.dumps({"task": task, "sample": "0", "response": path.read_text()}))
    return "\n".join(lines) + "\n"


def checks_of(run: Run) -> list[Json]:
    return [one["telemetry"]["race_check"] for one in run.verdicts.values()]


def row(mode: str, run: Run) -> list[object]:
    """A row of the table, under HEADS."""
    seconds = [one["seconds"] for one in checks_of(run) if one["state"] in ("clean", "found")]
    stages = [stage for one in run.verdicts.values() for stage in one["telemetry"]["stages"]]
    waited = sum(stage["ms"] for stage in stages if stage["stage"] == "wait.race_check")
    return [
        mode,
        len(run.verdicts),
        60 * len(run.verdicts) / run.seconds,
        statistics.median(seconds) if seconds else 0.0,
        max(seconds, default=0.0),
        waited / 1000,
    ]


def differences(off: Run, on: Run) -> list[str]:
    """A line for each candidate that the check decided, or could not look at."""
    lines = []
    for name, verdict in on.verdicts.items():
        before, outcome = off.verdicts[name]["outcome"]["kind"], verdict["outcome"]
        after, check = outcome["kind"], verdict["telemetry"]["race_check"]
        if before != after:
            lines.append(f"{name}: {before} -> {after} ({', '.join(sorted(kinds_in(outcome)))})")
        elif check["state"] == "not_run":
            lines.append(f"{name}: {after}, not checked: {check['reason']}")
    return lines


def outcomes(run: Run) -> str:
    counts = collections.Counter(one["outcome"]["kind"] for one in run.verdicts.values())
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))


def states(run: Run) -> str:
    counts = collections.Counter(one["state"] for one in checks_of(run))
    return ", ".join(f"{state} {count}" for state, count in sorted(counts.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description="The race check beside a GPU, and its cost.")
    parser.add_argument("--musacoder", default=str(ROOT / "build/dev/bin/musacoder"))
    parser.add_argument("--task", help="the task of all candidates, where they name none")
    parser.add_argument("--suite", help="the suite of the tasks that a .jsonl names")
    parser.add_argument("--jobs", type=int, help="candidates judged at once")
    parser.add_argument("--out", type=Path, help="write both runs' verdicts as JSON")
    parser.add_argument("candidates", help="a folder of candidates, a module or a .jsonl")
    parser.add_argument("options", nargs="*", help="of musacoder eval, behind --")
    arguments = parser.parse_args()
    options = list(arguments.options)
    for name in ("task", "suite", "jobs"):
        if getattr(arguments, name) is not None:
            options += [f"--{name}", str(getattr(arguments, name))]
    with tempfile.TemporaryDirectory() as folder:
        candidates = Path(arguments.candidates)
        if candidates.is_dir() and arguments.task is None:
            answers = Path(folder) / "answers.jsonl"
            answers.write_text(answers_of(candidates))
            candidates = answers
        options += ["--candidate", str(candidates)]
        judged(arguments.musacoder, "on", options)
        runs = {mode: judged(arguments.musacoder, mode, options) for mode in ("off", "on")}
    for line in differences(runs["off"], runs["on"]):
        print(line)
    for mode, run in runs.items():
        print(f"{mode}: {outcomes(run)}; race check: {states(run)}")
    print(table(HEADS, [row(mode, run) for mode, run in runs.items()]))
    if arguments.out:
        found = {mode: [*run.verdicts.values()] for mode, run in runs.items()}
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
