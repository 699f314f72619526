# SPDX-License-Identifier: Apache-2.0
"""How many wrong answers get a diagnosis, and what it says beside the bug that is known.

    python3 tools/diagnosis_share.py mutants build/dev/bin/musacoder [--jobs 2]
    python3 tools/diagnosis_share.py forge RUN/sft.jsonl

Answers with one bug whose values are wrong are counted; a line each shows bug and diagnosis, so
that a person can tell whether it is right. `forge` takes the repairs of a run with --bugs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Found = tuple[str, str, str, str]  # Name, kind of the bug, its text, the diagnosis.
ROOT = Path(__file__).resolve().parent.parent


def mutants(musacoder: str, jobs: int) -> Iterator[Found]:
    sys.path.insert(0, str(ROOT / "tests"))
    from corpus_sets import mutants as cases_of_mutants
    from judging import Judge

    known = {row["id"]: row for row in json.loads((ROOT / "tests/corpus/mutants.json").read_text())}
    cases = [case for case in cases_of_mutants() if "wrong" in known[case.name]["expect"]]
    options = ("--backend", "cpu", "--seed", "7")
    for case, result in zip(cases, Judge(musacoder, jobs, options).results(cases)):
        trials = result["verdict"]["outcome"].get("trials", []) if result else []
        if any(trial["findings"] for trial in trials):
            continue
        checks = [check for trial in trials for check in trial["checks"]]
        if any(check["problem"] in ("value", "nonfinite") for check in checks):
            edit = known[case.name]["edits"][0]
            text = f"{edit['find']} -> {edit['replace']}"
            diagnosis = next((one["diagnosis"] for one in checks if one["diagnosis"]), "")
            yield case.name, known[case.name]["kind"], text, diagnosis


def forge(path: Path) -> Iterator[Found]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    causes = {
        row["task"]: row["messages"][-1]["content"] for row in rows if row["kind"] == "review"
    }
    for row in rows:
        if row["kind"] != "retry" or row["provenance"]["mutations"][1:]:
            continue
        feedback = row["messages"][0]["content"].split("```")[-1]
        if "Result: wrong" not in feedback or not re.search(": (value|nonfinite):", feedback):
            continue
        found = re.search("Diagnosis: (.*)", feedback)
        cause = re.search("Cause: (.*)", causes.get(row["task"], ""))
        text = cause.group(1) if cause else "(no review row)"
        kind = row["provenance"]["mutations"][0]
        yield row["task"], kind, text, found.group(1) if found else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("mutants", "forge"))
    parser.add_argument("path")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    is_forge = options.kind == "forge"
    rows = forge(Path(options.path)) if is_forge else mutants(options.path, options.jobs)
    total, some, named = Counter[str](), Counter[str](), Counter[str]()
    for name, kind, text, diagnosis in rows:
        print(f"{name} {kind}\n  bug:       {' '.join(text.split())}\n  diagnosis: {diagnosis}")
        total[kind] += 1
        some[kind] += diagnosis != ""
        named[kind] += " equal" in diagnosis
    print("\n| bug | wrong values | with a diagnosis | an operator or parameter is named |")
    print("|---|---|---|---|")
    for kind in [*sorted(total), "all"]:
        cells = [str(c.total() if kind == "all" else c[kind]) for c in (total, some, named)]
        print(f"| {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
