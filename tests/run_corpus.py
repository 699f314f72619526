# SPDX-License-Identifier: Apache-2.0
"""Judges the corpus through the command line and compares outcomes with the expected ones.

  run_corpus.py --musacoder build/dev/bin/musacoder [--jobs 2] [--only PATTERN] SET…

SET is one of honest, mutants, answers, hostile, kernelbench. Prints a line for each surprise and a
summary for each set; exits 0 when every set reaches its bar, 77 when a set's tasks are not there.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests/corpus"
SKIPPED = 77
# Share of cases that must come out as expected.  What a resource bomb hits first, and the last
# digit of a reduced KernelBench task, may differ between machines.
BARS = {"honest": 1.0, "mutants": 0.95, "answers": 1.0, "hostile": 0.95, "kernelbench": 0.95}


@dataclass(frozen=True)
class Case:
    name: str
    task: str
    response: str
    expect: tuple[str, ...]


def honest() -> list[Case]:
    folder = CORPUS / "honest"
    files = sorted(folder.glob("*/*.py"))
    names = [str(path.relative_to(folder).with_suffix("")) for path in files]
    return [Case(name, name, path.read_text(), ("pass",)) for name, path in zip(names, files)]


def mutants() -> list[Case]:
    cases = []
    for mutant in json.loads((CORPUS / "mutants.json").read_text()):
        text = (CORPUS / "honest" / f"{mutant['of']}.py").read_text()
        for edit in mutant["edits"]:
            assert text.count(edit["find"]) == 1, f"{mutant['id']}: {edit['find']!r} is not unique"
            text = text.replace(edit["find"], edit["replace"])
        cases.append(Case(mutant["id"], mutant["of"], text, tuple(mutant["expect"])))
    return cases


def listed(folder: str) -> list[Case]:
    expected = json.loads((CORPUS / folder / "expected.json").read_text())
    return [
        Case(name, entry["task"], (CORPUS / folder / name).read_bytes().decode("utf-8", "replace"),
             tuple(entry["expect"]))
        for name, entry in expected.items()
    ]


def kernelbench() -> list[Case]:
    cases = []
    for path in sorted((CORPUS / "kernelbench").glob("level*/*.py")):
        level = path.parent.name.removeprefix("level")
        task = f"kernelbench:{level}/{path.stem}"
        cases.append(Case(task, task, path.read_text(), ("pass",)))
    return cases


SETS = {
    "honest": honest,
    "mutants": mutants,
    "answers": lambda: listed("answers"),
    "hostile": lambda: listed("hostile"),
    "kernelbench": kernelbench,
}


def judge(cases: list[Case], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One result a case, in order."""
    with tempfile.TemporaryDirectory() as folder:
        answers, results = Path(folder) / "answers.jsonl", Path(folder) / "results.jsonl"
        lines = [
            json.dumps({"task": case.task, "sample": case.name, "response": case.response})
            for case in cases
        ]
        answers.write_text("\n".join(lines) + "\n")
        command = [arguments.musacoder, "eval", "--candidate", str(answers), "--seed", "1",
                   "--jobs", str(arguments.jobs), "--out", str(results),
                   "--timeout", "20", *arguments.option]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            sys.exit(f"musacoder eval failed with exit code {done.returncode}")
        return [json.loads(line) for line in results.read_text().splitlines()]


def run_set(name: str, arguments: argparse.Namespace) -> bool:
    cases = [case for case in SETS[name]() if fnmatch(case.name, arguments.only)]
    if not cases:
        return True
    start = time.monotonic()
    results = judge(cases, arguments)
    seconds = time.monotonic() - start
    counts: collections.Counter[str] = collections.Counter()
    num_expected = 0
    for case, result in zip(cases, results, strict=True):
        outcome = result["verdict"]["outcome"]["kind"]
        counts[outcome] += 1
        if outcome in case.expect:
            num_expected += 1
        else:
            print(f"  {case.name}: {outcome}, expected {' or '.join(case.expect)}")
    if arguments.keep:
        with open(arguments.keep, "a") as file:
            file.writelines(json.dumps(result) + "\n" for result in results)
    share = num_expected / len(cases)
    print(f"{name}: {num_expected} of {len(cases)} as expected ({100 * share:.1f} %), "
          f"{dict(sorted(counts.items()))}, {seconds:.0f} s, "
          f"{60 * len(cases) / seconds:.1f} verdicts a minute")
    return share >= BARS[name]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--musacoder", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="*", help="judge the cases whose name matches")
    parser.add_argument("--keep", help="append the results to this file")
    parser.add_argument("--option", action="append", default=[], help="passed on to eval")
    parser.add_argument("sets", nargs="+", choices=list(SETS))
    arguments = parser.parse_args()
    if "kernelbench" in arguments.sets and "MC_KERNELBENCH" not in os.environ:
        shared = ROOT.parent / "shared/kernelbench"
        if not shared.is_dir():
            print("kernelbench: skipped; give a copy's path in MC_KERNELBENCH")
            return SKIPPED
        os.environ["MC_KERNELBENCH"] = str(shared)
    reached = [run_set(name, arguments) for name in arguments.sets]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
