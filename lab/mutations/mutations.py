#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutations of the C++ code, drawn by a seed: which do the unit tests catch?

A mutation changes one line: a comparison, a sign, a number, a condition, or a statement that goes.
It is compiled into the tests of its layer, which run; a mutation that does not compile is drawn
again. The sources are put back in each case.

usage: lab/mutations/mutations.py --seed 1 [--count 30] [--build build/dev] [ROOM ...]
       (rooms: cli forge train musify model)
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST_SECONDS = 300
# Patterns of what is replaced, and by what.
SWAPS = (
    (r"(?<=[\w)\]] )==(?= )", "!="), (r"(?<=[\w)\]] )!=(?= )", "=="),
    (r"(?<=[\w)\]] )<=(?= )", "<"), (r"(?<=[\w)\]] )>=(?= )", ">"),
    (r"(?<=[\w)\]] )<(?= [\w(])", "<="), (r"(?<=[\w)\]] )>(?= [\w(])", ">="),
    (r"(?<=[\w)\]] )&&(?= )", "||"), (r"(?<=[\w)\]] )\|\|(?= )", "&&"),
    (r"(?<=[\w)\]] )\+(?= )", "-"), (r"(?<=[\w)\]] )-(?= )", "+"), (r"(?<=[\w)\]] )\*(?= )", "/"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"(?<![\w.\"])[1-9]\d*(?![\w.\"])", "{more}"),
)  # fmt: skip
STATEMENT = re.compile(r"^\s+[\w.>()\[\]:-]+(?: (?:=|\+=|-=|\|=) |\()[^{}]*;\s*$")


@dataclass(frozen=True)
class Mutation:
    path: Path
    number: int  # The line's, from 1.
    before: str
    after: str


def mutations_of(path: Path) -> Iterator[Mutation]:
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        code = re.sub(r"//.*", "", line)
        if re.match(r"\s*(#|static_assert|MC_CHECK|using |namespace )", code) or '"' in code:
            continue
        for pattern, text in SWAPS:
            for found in re.finditer(pattern, code):
                new = text.format(more=int(found[0]) + 1) if "{more}" in text else text
                after = line[: found.start()] + new + line[found.end() :]
                yield Mutation(path, number, line, after)
        if re.match(r"\s*(\} else )?if \((?!const |auto )[^;]*\) [^;]*;?\{?$", code):
            at = line.index("if (") + 4
            depth, end = 1, at
            while depth and end < len(line):
                depth += {"(": 1, ")": -1}.get(line[end], 0)
                end += 1
            if depth == 0:
                after = f"{line[:at]}!({line[at : end - 1]}){line[end - 1 :]}"
                yield Mutation(path, number, line, after)
        if STATEMENT.match(code) and not re.match(r"\s+(return|const|auto|MC_)\b", code):
            yield Mutation(path, number, line, ";")


def is_caught(mutation: Mutation, test: str, build: Path) -> str:
    """The tests' word: caught, not caught, or no mutation where it does not compile."""
    text = mutation.path.read_text("utf-8")
    lines = text.split("\n")
    lines[mutation.number - 1] = mutation.after
    mutation.path.write_text("\n".join(lines), "utf-8")
    try:
        made = subprocess.run(["ninja", "-C", str(build), test], capture_output=True)
        if made.returncode != 0:
            return "does not compile"
        command = ["ctest", "--test-dir", str(build), "-L", "quick", "-R", pattern_of(build, test)]
        command += ["--stop-on-failure", "--timeout", "60"]
        ran = subprocess.run(command, capture_output=True, timeout=TEST_SECONDS * 4)
        return "caught" if ran.returncode != 0 else "NOT CAUGHT"
    except subprocess.TimeoutExpired:
        return "caught"  # An endless loop is one.
    finally:
        mutation.path.write_text(text, "utf-8")


def pattern_of(build: Path, test: str) -> str:
    """A pattern for the names of the suites of a program."""
    command = [str(build / "bin" / test), "--gtest_list_tests"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    suites = [line.split(".")[0] for line in listed.split("\n") if re.match(r"\S+\.", line)]
    return "^(" + "|".join(re.escape(suite) for suite in suites) + r")\."


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("rooms", nargs="*", default=["cli", "forge", "train", "musify", "model"])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    counts: dict[str, int] = {}
    while sum(counts.values()) < arguments.count:
        room = arguments.rooms[sum(counts.values()) % len(arguments.rooms)]
        files = [
            path
            for path in sorted((ROOT / "src" / room).glob("*.cc"))
            if not re.search(r"_(test|fuzz)\.cc$", path.name)
        ]
        path = rng.choices(files, [len(path.read_text("utf-8")) for path in files])[0]
        found = list(mutations_of(path))
        if not found:
            continue
        mutation = rng.choice(found)
        word = is_caught(mutation, f"{room}_test", arguments.build)
        place = f"{mutation.path.relative_to(ROOT)}:{mutation.number}"
        print(f"{word}: {place}\n  - {mutation.before.strip()}\n  + {mutation.after.strip()}")
        sys.stdout.flush()
        if word != "does not compile":
            counts[word] = counts.get(word, 0) + 1
    print(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
