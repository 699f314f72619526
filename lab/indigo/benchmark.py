#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Indigo: labelled races, missing barriers and errors at bounds as a benchmark of `--backend cpu`.

The programs are those of two suites under BSD-3, of which nothing is here. Clone them and check out
the commits that the figures are of:

    github.com/burtscher/IndigoSuite    c95ac19
    github.com/burtscher/Indigo3Suite   f351177

usage: lab/indigo/benchmark.py make CHECKOUT FOLDER [--count 60] [--seed 1]
       cd FOLDER && musacoder eval -c answers.jsonl --policy kernelbench --backend cpu \\
           --inputs native --no-shapes --seed 1 -o 1.jsonl
       lab/indigo/benchmark.py report FOLDER/labels.json FOLDER/1.jsonl...

make tells the suites apart by their files. Of IndigoSuite it takes the variants for int: half
without a bug, half with one, each of these with two to four graphs. An oracle that shares nothing
with the executor (oracle.h) finds by the accesses of a kernel which faults can show with a graph;
what a name says does not count. Of Indigo3 (whole programs, several kernels and loops of the host)
the labels are the suite's, corrected where a program was read (suite3.py).

A finding counts; a wrong value alone does not. A case whose fault shows is found or missed. Each
finding that is neither shown nor weak is a false alarm, unless an access out of bounds shows, which
makes the rest of a kernel undefined. report ends with 1 where a fault is missed or an alarm false.
"""

from __future__ import annotations

import argparse
import collections
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lab/gpu")]

import cases  # noqa: E402
import suite  # noqa: E402
import suite3  # noqa: E402
from expectation import Json, kinds_in  # noqa: E402
from figures import table  # noqa: E402

OUT_OF_BOUNDS = "out_of_bounds"
NOT_JUDGED = ("compile", "illegal", "infra", "unsupported")
HEADS = ("bugs", "by the oracle", "runs", "found", "missed", "alarms", "silent", "wrong", "refused")


def found_in(outcome: Json) -> set[str]:
    """The kinds of the findings, accesses out of bounds as one."""
    kinds = kinds_in(outcome)
    return {OUT_OF_BOUNDS if kind.startswith(OUT_OF_BOUNDS) else kind for kind in kinds}


def score(label: Json, outcome: Json) -> str:
    found, shows, weak = found_in(outcome), set(label["shows"]), set(label["weak"])
    if outcome["kind"] in NOT_JUDGED:
        return "refused"
    if found - shows - weak and OUT_OF_BOUNDS not in shows:
        return "alarms"
    if shows:
        return "found" if found & shows else "missed"
    return "found" if found else "silent"


def class_of(label: Json) -> str:
    return "shows" if label["shows"] else "weak" if label["weak"] else "cannot show"


@dataclass
class Report:
    rows: dict[tuple[str, str], collections.Counter[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, label: Json, row: Json) -> None:
        verdict = row["verdict"]
        outcome, result = verdict["outcome"], score(label, verdict["outcome"])
        counts = self.rows.setdefault((label["bugs"], class_of(label)), collections.Counter())
        counts.update(["runs", result])
        if result != "refused" and outcome["kind"] != "pass" and not found_in(outcome):
            counts["wrong"] += 1
        if result in ("missed", "alarms", "refused"):
            kinds = ", ".join(sorted(found_in(outcome))) or "no finding"
            self.faults.append(f"{result}: {verdict['candidate']}: {outcome['kind']}, {kinds}")
        self.seconds.append(row["seconds"])

    def text(self) -> str:
        rows = [(*key, *(counts[name] for name in HEADS[2:])) for key, counts in self.rows.items()]
        seconds = f"{statistics.median(self.seconds):.1f} s a candidate (median)"
        return "\n".join([table(HEADS, sorted(rows)), *sorted(self.faults), seconds])

    def is_good(self) -> bool:
        return not self.faults


def report_of(labels: Mapping[str, Json], files: Sequence[Path]) -> Report:
    report = Report()
    for path in files:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            report.add(labels[row["verdict"]["candidate"].partition("#")[2]], row)
    return report


def make(options: argparse.Namespace) -> int:
    checkout, folder = options.checkout, options.folder
    if (checkout / "codeGen").is_dir():
        made = list(suite3.cases(checkout, folder, options.seed))
    else:
        made = list(suite.cases(checkout, folder, options.count, options.seed))
    cases.write(made, folder)
    print(f"{len(made)} cases in {folder / 'answers.jsonl'}")
    return 0


def report(options: argparse.Namespace) -> int:
    made = report_of(json.loads(options.labels.read_text()), options.verdicts)
    print(made.text())
    return 0 if made.is_good() else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Indigo as a benchmark of the CPU backend.")
    commands = parser.add_subparsers(required=True)
    maker = commands.add_parser("make", help="write tasks, answers and labels")
    maker.add_argument("checkout", type=Path)
    maker.add_argument("folder", type=Path)
    maker.add_argument("--count", type=int, default=60, help="variants of IndigoSuite")
    maker.add_argument("--seed", type=int, default=1, help="of the selection")
    maker.set_defaults(run=make)
    reporter = commands.add_parser("report", help="print the table")
    reporter.add_argument("labels", type=Path)
    reporter.add_argument("verdicts", type=Path, nargs="+")
    reporter.set_defaults(run=report)
    options = parser.parse_args()
    result: int = options.run(options)
    return result


if __name__ == "__main__":
    sys.exit(main())
