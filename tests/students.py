#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks students' programs (tests/corpus/students) by `musacoder check`.

  students.py --musacoder build/dev/bin/musacoder [--jobs 2] [--only PATTERN]

In each of faulty/, one line has its finding's kind behind "// Finding: "; those of right/ have no
finding and end with exit code 0.  $MC_CORPUS_SHARE judges a share (sharing.py).  Prints a
line for each surprise and a summary; exits 0 if there is none.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from sharing import share_of

FOLDER = Path(__file__).resolve().parent / "corpus/students"
MARK = re.compile(r"// Finding: (\w+)$")


def expected_of(program: Path) -> list[tuple[int, str]]:
    """The line and kind of the finding; none in a right program."""
    lines = enumerate(program.read_text().splitlines(), 1)
    return [(number, found[1]) for number, line in lines if (found := MARK.search(line))]


def surprise_of(musacoder: str, program: Path) -> str:
    """Words for a result that is not the expected one, or nothing."""
    expected = expected_of(program)
    if len(expected) != (program.parent.name == "faulty"):
        return f"{len(expected)} marks"
    command = [musacoder, "check", "--json", "--timeout", "60", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        return done.stderr.strip()
    result = json.loads(done.stdout)
    found = [(one["line"], one["kind"]) for one in result["findings"]]
    if expected:
        return "" if expected[0] in found else f"expected {expected[0]}, found {found}"
    return "" if done.returncode == 0 else f"exit code {done.returncode}, found {found}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--musacoder", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="*", help="check the programs whose name matches")
    arguments = parser.parse_args()
    all_are_right = True
    for folder in ("faulty", "right"):
        programs = share_of([one for one in sorted((FOLDER / folder).glob("*.cu"))
                             if fnmatch(one.stem, arguments.only)], "MC_CORPUS_SHARE")  # fmt: skip
        with ThreadPoolExecutor(arguments.jobs) as pool:
            surprises = list(pool.map(lambda one: surprise_of(arguments.musacoder, one), programs))
        for program, surprise in zip(programs, surprises, strict=True):
            if surprise:
                print(f"  {program.name}: {surprise}")
        as_expected = surprises.count("")
        print(f"{folder}: {as_expected} of {len(programs)} as expected", flush=True)
        all_are_right &= as_expected == len(programs)
    return 0 if all_are_right else 1


if __name__ == "__main__":
    sys.exit(main())
