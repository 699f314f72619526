# SPDX-License-Identifier: Apache-2.0
"""Judges cases of the corpus through the command line, and counts those that are as expected."""

from __future__ import annotations

import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus_sets import BARS, Case
from expectation import Json


@dataclass
class Judge:
    """The arguments of `musacoder eval`; `limit_s` is for all calls together."""

    musacoder: str
    jobs: int = 1
    options: tuple[str, ...] = ()
    limit_s: float | None = None

    def results(self, cases: Sequence[Case]) -> list[Json | None]:
        """One result a case, in order: {"reward", "seconds", "verdict"}; None for those that were
        not judged within the limit.
        """
        found: dict[int, Json | None] = {}
        for options in dict.fromkeys(case.options for case in cases):
            group = [i for i, case in enumerate(cases) if case.options == options]
            found.update(zip(group, self._run([cases[i] for i in group], options), strict=True))
        return [found[i] for i in range(len(cases))]

    def _run(self, cases: Sequence[Case], options: tuple[str, ...]) -> list[Json | None]:
        with tempfile.TemporaryDirectory() as folder:
            answers, results = Path(folder) / "answers.jsonl", Path(folder) / "results.jsonl"
            lines = [
                json.dumps({"task": case.task, "sample": case.name, "response": case.response})
                for case in cases
            ]
            answers.write_text("\n".join(lines) + "\n")
            command = [self.musacoder, "eval", "--candidate", str(answers), "--out", str(results)]
            command += ["--jobs", str(self.jobs), *self.options, *options]
            is_whole = self._call(command)
            written = results if is_whole else results.with_name(results.name + ".part")
            found = {}
            for line in written.read_text().splitlines() if written.exists() else ():
                result = json.loads(line)
                found[result["verdict"]["candidate"]] = result
            return [found.get(f"{case.task}#{case.name}") for case in cases]

    def _call(self, command: Sequence[str]) -> bool:
        """True if the call came to its end; its processes end with this one's in any case."""
        start = time.monotonic()
        try:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        except OSError as error:
            raise SystemExit(f"cannot run {command[0]} (--musacoder): {error.strerror}") from None
        try:
            process.wait(None if self.limit_s is None else max(0, self.limit_s))
        except subprocess.TimeoutExpired:
            return False
        finally:
            process.terminate()
            process.wait()
            if self.limit_s is not None:
                self.limit_s -= time.monotonic() - start
        if process.returncode != 0:
            raise SystemExit(f"musacoder eval failed with exit code {process.returncode}")
        return True


def seed_of(given: int | None) -> str:
    """The seed of a run's inputs: the one given, that of $MC_CORPUS_SEED, or a new one. Printed, so
    that a failure can be repeated.
    """
    drawn = os.environ.get("MC_CORPUS_SEED") or str(random.SystemRandom().randrange(10**9))
    seed = drawn if given is None else str(given)
    print(f"seed of all inputs: --seed {seed}", flush=True)
    return seed


def end_with_children() -> None:
    """Lets SIGTERM end a script as an exception does."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def run_set(
    name: str, cases: Sequence[Case], judge: Judge, keep: str | None = None, bar_max: float = 1.0
) -> bool:
    """Prints a line for each surprise and a summary; whether the set reaches its bar, or
    `bar_max` where that is lower.
    """
    if not cases:
        return True
    start = time.monotonic()
    results = judge.results(cases)
    seconds = time.monotonic() - start
    counts: collections.Counter[str] = collections.Counter()
    num_expected = 0
    for case, result in zip(cases, results, strict=True):
        if result is None:
            counts["not judged"] += 1
            print(f"  {case.name}: not judged within the limit")
            continue
        counts[result["verdict"]["outcome"]["kind"]] += 1
        surprises = case.expectation.surprises(result["verdict"])
        num_expected += not surprises
        for surprise in surprises:
            print(f"  {case.name}: {surprise}")
    if keep:
        with open(keep, "a") as file:
            file.writelines(json.dumps(result) + "\n" for result in results if result)
    share = num_expected / len(cases)
    num_judged = len(cases) - counts["not judged"]
    print(
        f"{name}: {num_expected} of {len(cases)} as expected ({100 * share:.1f} %), "
        f"{dict(sorted(counts.items()))}, {seconds:.0f} s, "
        f"{60 * num_judged / seconds:.1f} verdicts a minute",
        flush=True,
    )
    return share >= min(BARS[name], bar_max)
