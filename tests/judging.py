# SPDX-License-Identifier: Apache-2.0
"""Judges cases of the corpus through the command line, and counts those that are as expected."""

from __future__ import annotations

import collections
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus_sets import BARS, Case
from expectation import Json


@dataclass(frozen=True)
class Judge:
    """How `musacoder eval` is called."""

    musacoder: str
    jobs: int = 1
    options: tuple[str, ...] = ()

    def results(self, cases: Sequence[Case]) -> list[Json]:
        """One result a case, in order: {"reward", "seconds", "verdict"}."""
        found: dict[int, Json] = {}
        for options in dict.fromkeys(case.options for case in cases):
            group = [i for i, case in enumerate(cases) if case.options == options]
            found.update(zip(group, self._run([cases[i] for i in group], options), strict=True))
        return [found[i] for i in range(len(cases))]

    def _run(self, cases: Sequence[Case], options: tuple[str, ...]) -> list[Json]:
        with tempfile.TemporaryDirectory() as folder:
            answers, results = Path(folder) / "answers.jsonl", Path(folder) / "results.jsonl"
            lines = [
                json.dumps({"task": case.task, "sample": case.name, "response": case.response})
                for case in cases
            ]
            answers.write_text("\n".join(lines) + "\n")
            command = [self.musacoder, "eval", "--candidate", str(answers), "--out", str(results)]
            command += ["--jobs", str(self.jobs), *self.options, *options]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                raise SystemExit(f"musacoder eval failed with exit code {done.returncode}")
            return [json.loads(line) for line in results.read_text().splitlines()]


def run_set(name: str, cases: Sequence[Case], judge: Judge, keep: str | None = None) -> bool:
    """Prints a line for each surprise and a summary; whether the set reaches its bar."""
    if not cases:
        return True
    start = time.monotonic()
    results = judge.results(cases)
    seconds = time.monotonic() - start
    counts: collections.Counter[str] = collections.Counter()
    num_expected = 0
    for case, result in zip(cases, results, strict=True):
        counts[result["verdict"]["outcome"]["kind"]] += 1
        surprises = case.expectation.surprises(result["verdict"])
        num_expected += not surprises
        for surprise in surprises:
            print(f"  {case.name}: {surprise}")
    if keep:
        with open(keep, "a") as file:
            file.writelines(json.dumps(result) + "\n" for result in results)
    share = num_expected / len(cases)
    print(
        f"{name}: {num_expected} of {len(cases)} as expected ({100 * share:.1f} %), "
        f"{dict(sorted(counts.items()))}, {seconds:.0f} s, "
        f"{60 * len(cases) / seconds:.1f} verdicts a minute",
        flush=True,
    )
    return share >= BARS[name]
