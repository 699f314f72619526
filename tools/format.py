#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `format` test: every C++ and CUDA file of ours is as clang-format 19 would write it.

Prints the files that differ and exits with 1 when there are any; exits with 77 (skipped) where
there is no clang-format 19, because other versions break lines elsewhere.  --fix rewrites them.

usage: python3 tools/format.py [--fix]
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

VERSION = "19"
SUFFIXES = {".cc", ".h", ".cu", ".cuh", ".hpp"}
ANSWERS = ("tests/corpus/", "src/reward/golden/", "tests/golden/")  # Kept as models write them.
SKIPPED = 77
ROOT = pathlib.Path(__file__).parents[1]


def formatter() -> str | None:
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program is None:
            continue
        told = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        if f"version {VERSION}." in told:
            return program
    return None


def sources() -> list[pathlib.Path]:
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    paths = [ROOT / path for path in listed if path and not path.startswith(ANSWERS)]
    return [path for path in paths if path.suffix in SUFFIXES and path.exists()]


def unformatted(program: str) -> list[str]:
    """One process for all files: the start of each would be most of the time."""
    command = [program, "--dry-run", "--ferror-limit=1", *map(str, sources())]
    warned = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    found = re.findall(r"^(/.+?):\d+:\d+: warning: ", warned, re.MULTILINE)
    return sorted(set(found))


def main(arguments: list[str]) -> int:
    program = formatter()
    if program is None:
        print(
            f"skipped: clang-format {VERSION} is not installed (apt install clang-format-{VERSION})"
        )
        return SKIPPED
    wrong = unformatted(program)
    if "--fix" in arguments and wrong:
        subprocess.run([program, "-i", *wrong], check=True)
        return 0
    for path in wrong:
        name = pathlib.Path(path).relative_to(ROOT)
        print(f"{name}: not formatted; run python3 tools/format.py --fix")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
