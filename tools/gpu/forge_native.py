# SPDX-License-Identifier: Apache-2.0
"""The forge's kernels at a GPU's sizes, for one run of `musacoder eval`, and what came of it.

  musacoder forge --tasks 120 --families all --size large --out LARGE
  forge_native.py take LARGE NATIVE --out DIR
  cd DIR && musacoder eval -c native.jsonl --backend cuda --timing quick --out verdicts.jsonl
  forge_native.py report DIR

`take` picks answers so that each variant of a template is there with several tasks, and writes
DIR/native.jsonl with the tasks beside it. `report` prints the share that passes, and speed-ups by
family and variant.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path[:] = [str(Path(__file__).resolve().parent)] + sys.path[1:]

from figures import share_interval, table  # noqa: E402

Json = dict[str, Any]
SPEED = 1.1  # A variant that is this much faster than eager PyTorch counts.


def rows_of(run: Path) -> Iterator[Json]:
    """The answers of a run, each with where its task is."""
    size = json.loads((run / "forge.json").read_text())["settings"]["size"]
    for line in (run / "sft.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["kind"] == "generation":
            source = (run / "tasks/train" / (row["task"] + ".py")).read_text()
            yield {**row, "source": source, "size": size}


def variants_of(row: Json) -> list[tuple[str, str]]:
    """Size and template of each kernel; halves and views are variants of their own."""
    names = row["provenance"]["template"].split("+")
    kinds = [kind for kind in ("float16", "bfloat16") if "torch." + kind in row["source"]]
    return [(row["size"], name) for name in names] + [(row["size"], kind) for kind in kinds]


def taken(rows: Iterable[Json], wanted: int) -> list[Json]:
    """Those rows with a variant that fewer than `wanted` of the rows before have."""
    counts: Counter[tuple[str, str]] = Counter()
    found = []
    for row in sorted(rows, key=lambda row: len(variants_of(row))):
        if any(counts[variant] < wanted for variant in variants_of(row)):
            counts.update(variants_of(row))
            found.append(row)
    return found


def take(runs: list[Path], out: Path, wanted: int) -> None:
    rows = taken((row for run in runs for row in rows_of(run)), wanted)
    (out / "tasks").mkdir(parents=True, exist_ok=True)
    with (out / "native.jsonl").open("w") as file:
        for row in rows:
            task = f"tasks/{row['size']}-{row['task']}.py"
            (out / task).write_text(row["source"])
            line = {"task": task, "sample": row["provenance"]["template"]}
            line |= {"response": row["messages"][-1]["content"]}
            line |= {"families": row["families"], "size": row["size"]}
            file.write(json.dumps(line) + "\n")
    print(f"{len(rows)} answers, {len({v for row in rows for v in variants_of(row)})} variants")


def report(folder: Path) -> None:
    answers = [json.loads(line) for line in (folder / "native.jsonl").read_text().splitlines()]
    by_id = {f"{answer['task']}#{answer['sample']}": answer for answer in answers}
    outcomes: Counter[str] = Counter()
    speeds: dict[str, dict[str, list[float]]] = {"family": defaultdict(list)}
    speeds["variant"] = defaultdict(list)
    for line in (folder / "verdicts.jsonl").read_text().splitlines():
        verdict = json.loads(line)["verdict"]
        answer = by_id[verdict["candidate"]]
        outcome = verdict["outcome"]
        outcomes[outcome["kind"]] += 1
        if outcome["kind"] != "pass":
            print(f"{outcome['kind']:12} {verdict['candidate']}")
        elif outcome["performance"] is not None:
            speed = float(outcome["performance"]["speedup_eager"]["median"])
            for family in answer["families"]:
                speeds["family"][f"{family} {answer['size']}"].append(speed)
            for name in answer["sample"].split("+"):
                speeds["variant"][f"{name} {answer['size']}"].append(speed)
    num = sum(outcomes.values())
    low, high = share_interval(outcomes["pass"], num)
    print(f"{outcomes['pass']} of {num} pass ({low:.2%} to {high:.2%}): {dict(outcomes)}")
    for kind, found in speeds.items():
        lines = [
            (name, len(values), statistics.median(values), max(values))
            for name, values in sorted(found.items())
        ]
        print(table((kind, "answers", "median", "best"), lines) if lines else "")
        fast = sum(max(values) > SPEED for values in found.values())
        print(f"{fast} of {len(found)} have an answer above {SPEED} x eager")


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("take")
    taking.add_argument("runs", type=Path, nargs="+")
    taking.add_argument("--out", type=Path, required=True)
    taking.add_argument("--each", type=int, default=2, help="answers of each variant")
    commands.add_parser("report").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "take":
        take(arguments.runs, arguments.out, arguments.each)
    else:
        report(arguments.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
