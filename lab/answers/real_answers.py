#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges real answers of models and holds the verdicts against what reading them says.

The answers are those of a public repository, of which nothing is here:
github.com/anneouyang/KernelBenchLeaderboard, 413 CUDA answers that KernelBench's own harness
accepted.  Give the path of a checkout, or of a bare copy of it.  What each answer is, by reading,
stands in real_answers_labels.json:

    honest  every computation of forward is in the answer's own kernels
    torch   part of the work is PyTorch's or a vendor library's
    wrong   it does not compute what the task asks for

Under the default policy at most 1 honest answer may be refused and at most 12 may be unsupported,
and no answer that leaves work to PyTorch may pass: otherwise the exit code is 1.

usage: lab/answers/real_answers.py export CHECKOUT FOLDER
       musacoder bench --answers FOLDER/answers.jsonl --suite FOLDER --out FOLDER/bench --jobs 2
       lab/answers/real_answers.py compare FOLDER FOLDER/bench/verdicts.jsonl
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lab/gpu")]

from expectation import Json, told_by  # noqa: E402
from figures import table  # noqa: E402

ASSETS = "docs/assets"
RAW = f"{ASSETS}/raw_data.json"
LABELS = ("honest", "torch", "wrong")
REFUSED_MAX, UNSUPPORTED_MAX = 1, 12


@dataclass(frozen=True)
class Answer:
    key: str  # level/problem/index: the second answer to problem 40 of level 1 is 1/40/1
    code: str

    @property
    def task(self) -> str:
        return "kernelbench:" + self.key.rpartition("/")[0]

    @property
    def content_hash(self) -> str:
        return hashlib.sha256(self.code.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Label:
    label: str
    reason: str


class InputError(Exception):
    """The input is wrong; the message is one line for the user."""


# ---- Input --------------------------------------------------------------------------------------


def text_of(checkout: Path, path: str) -> str:
    """A file of a work tree, or of the newest commit of a bare repository."""
    if (checkout / path).is_file():
        return (checkout / path).read_text()
    command = ["git", "-C", str(checkout), "show", f"HEAD:{path}"]
    shown = subprocess.run(command, capture_output=True, text=True)
    if shown.returncode != 0:
        raise InputError(f"no {path} in {checkout}: {shown.stderr.strip().splitlines()[-1]}")
    return shown.stdout


def answers_of(raw: Sequence[Json]) -> list[Answer]:
    """Answers by level and problem; the raw data counts problems from 0, KernelBench from 1."""
    found = []
    counts: collections.Counter[tuple[int, int]] = collections.Counter()
    for entry in raw:
        place = entry["level"], entry["problem_id"] + 1
        found.append((*place, counts[place], entry["code"]))
        counts[place] += 1
    return [Answer(f"{level}/{problem}/{i}", code) for level, problem, i, code in sorted(found)]


def export(checkout: Path, folder: Path) -> None:
    """Writes tasks (a folder for MC_KERNELBENCH) and answers as MooreEval reads them."""
    answers = answers_of(json.loads(text_of(checkout, RAW)))
    tasks: dict[str, list[Json]] = collections.defaultdict(list)
    for level, problem in dict.fromkeys(tuple(one.key.split("/")[:2]) for one in answers):
        name = f"l{level}_p{problem}"
        code = text_of(checkout, f"{ASSETS}/problems/{name}.py")
        fields = {"level": int(level), "problem_id": int(problem), "name": name, "code": code}
        tasks[level].append(fields)
    folder.mkdir(parents=True, exist_ok=True)
    for level, lines in tasks.items():
        write_lines(folder / f"level{level}.jsonl", lines)
    write_lines(folder / "answers.jsonl", [submission(one) for one in answers])


def submission(answer: Answer) -> Json:
    sample = int(answer.key.rpartition("/")[2])
    fenced = f"```python\n{answer.code}\n```\n"
    return {"task": answer.task, "sample": sample, "response": fenced}


def read_exported(folder: Path) -> list[Answer]:
    return [
        Answer(
            f"{line['task'].removeprefix('kernelbench:')}/{line['sample']}",
            line["response"].removeprefix("```python\n").removesuffix("\n```\n"),
        )
        for line in read_lines(folder / "answers.jsonl")
    ]


def read_labels(path: Path, answers: Sequence[Answer]) -> dict[str, Label]:
    """A label for each answer, made for just this text."""
    entries = json.loads(path.read_text())
    for answer in answers:
        entry = entries.get(answer.key)
        if entry is None:
            raise InputError(f"{path.name} has no label for {answer.key}")
        if entry["hash"] != answer.content_hash:
            raise InputError(f"{answer.key} is not the text that {path.name} labels")
        if entry["label"] not in LABELS:
            raise InputError(f"{path.name}: {answer.key}: no label is named {entry['label']!r}")
    return {
        one.key: Label(entries[one.key]["label"], entries[one.key].get("reason", ""))
        for one in answers
    }


def read_lines(path: Path) -> list[Json]:
    with path.open() as file:
        return [json.loads(line) for line in file]


def write_lines(path: Path, lines: Sequence[Json]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_outcomes(path: Path) -> dict[str, Json]:
    """The last outcome of each answer, by key."""
    verdicts = [line["verdict"] for line in read_lines(path)]
    return {key_of(verdict["candidate"]): verdict["outcome"] for verdict in verdicts}


def key_of(candidate: str) -> str:
    return candidate.removeprefix("kernelbench:").replace("#", "/")


# ---- Result -------------------------------------------------------------------------------------


def class_of(outcome: Json | None) -> str:
    """The class of an outcome that the bars count."""
    kind = "not judged" if outcome is None else str(outcome["kind"])
    return kind if kind in ("pass", "unsupported", "infra", "not judged") else "refused"


CLASSES = ("pass", "refused", "unsupported", "infra", "not judged")


def counted(
    labels: Mapping[str, Label], outcomes: Mapping[str, Json], keys: Sequence[str]
) -> list[list[object]]:
    """Rows of label, level, number and number of each class."""
    rows: list[list[object]] = []
    for label in LABELS:
        with_label = [key for key in keys if labels[key].label == label]
        for level in ("1", "2", "3", "all"):
            of_level = [key for key in with_label if level in ("all", key.split("/")[0])]
            counts = collections.Counter(class_of(outcomes.get(key)) for key in of_level)
            if of_level:
                rows.append([label, level, len(of_level), *(counts[name] for name in CLASSES)])
    return rows


def description_of(outcome: Json) -> str:
    """The kind and the evidence of an outcome, in one line."""
    trials = outcome.get("trials", [])
    lists = [outcome.get(name, []) for name in ("constructs", "diagnostics", "findings")]
    evidence = [one for each in (*lists, *(trial["findings"] for trial in trials)) for one in each]
    parts = [told_by(outcome)[:200], *(_at_place(one) for one in evidence[:1])]
    overwritten = {trial["inputs_mutated"] for trial in trials} - {""}
    parts += [f"overwrites {names}" for names in sorted(overwritten)]
    text = " ".join("; ".join(part for part in parts if part).split())
    return f"{outcome['kind']}: {text[:400]}"


def _at_place(evidence: Json) -> str:
    place = evidence["location"]
    where = f"{place['source']}:{place['line']}: " if place["line"] else ""
    return f"{where}{evidence.get('message') or evidence.get('detail', '')}"


def listed(
    labels: Mapping[str, Label], outcomes: Mapping[str, Json], keys: Sequence[str]
) -> Iterator[str]:
    """A line for each honest answer that did not pass, and for each other that did."""
    for key in keys:
        label, outcome = labels[key], outcomes.get(key)
        if outcome is None:
            continue
        if label.label == "honest" and outcome["kind"] != "pass":
            yield f"  honest {key}: {description_of(outcome)}"
        if label.label != "honest" and outcome["kind"] == "pass":
            yield f"  {label.label} {key} passes: {label.reason}"


def missed(
    labels: Mapping[str, Label], outcomes: Mapping[str, Json], keys: Sequence[str]
) -> list[str]:
    """The bars that are not met; nothing if all are."""
    counts = collections.Counter((labels[key].label, class_of(outcomes.get(key))) for key in keys)
    bars = [
        ("honest", "refused", REFUSED_MAX),
        ("honest", "unsupported", UNSUPPORTED_MAX),
        ("torch", "pass", 0),
        *((label, name, 0) for label in LABELS for name in ("infra", "not judged")),
    ]
    return [
        f"missed: {counts[label, name]} {label} answers are {name}, at most {most} may be"
        for label, name, most in bars
        if counts[label, name] > most
    ]


# ---- Command ------------------------------------------------------------------------------------


def compare(folder: Path, verdicts: Path) -> int:
    answers = read_exported(folder)
    labels = read_labels(Path(__file__).with_name("real_answers_labels.json"), answers)
    outcomes = read_outcomes(verdicts)
    keys = [one.key for one in answers]
    print(table(("label", "level", "answers", *CLASSES), counted(labels, outcomes, keys)))
    for line in listed(labels, outcomes, keys):
        print(line)
    breaches = missed(labels, outcomes, keys)
    print("\n".join(breaches) or "all bars are met")
    return 1 if breaches else 0


def main(arguments: Sequence[str]) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("export", "compare"))
    parser.add_argument("source", type=Path, help="a checkout, or what export wrote")
    parser.add_argument("target", type=Path, help="a folder to write, or the file of verdicts")
    given = parser.parse_args(arguments)
    try:
        if given.command == "compare":
            return compare(given.source, given.target)
        export(given.source, given.target)
    except (InputError, OSError) as error:
        print(f"real_answers: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
