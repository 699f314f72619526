#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `format` test: checks our C++ and CUDA files with clang-format 19, and Python files with
black.

Prints the files that differ and exits with 1 when there are any; exits with 77 (skipped) if one of
the two is missing, because other versions break lines differently.  --fix rewrites them.

usage: python3 tools/format.py [--fix]     `./run.sh test` installs both
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

from code_lines import listed_files

CLANG_FORMAT_VERSION = "19"
CPP_SUFFIXES = {".cc", ".h", ".cu", ".cuh", ".hpp"}
# These files are kept as models wrote them.
ANSWERS = ("tests/corpus/", "src/reward/golden/", "tests/golden/", "lab/audit/errors/")
SKIPPED = 77
ROOT = pathlib.Path(__file__).parents[1]


def clang_format() -> str | None:
    for name in (f"clang-format-{CLANG_FORMAT_VERSION}", "clang-format"):
        program = shutil.which(name)
        if program is None:
            continue
        output = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        if f"version {CLANG_FORMAT_VERSION}." in output:
            return program
    return None


def unformatted_cpp(program: str, paths: list[str]) -> list[str]:
    """Checks all files in one process, since starting a process per file would take most of the
    time.
    """
    command = [program, "--dry-run", "--ferror-limit=1", *paths]
    warned = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning: ", warned, re.MULTILINE)))


def unformatted_python(program: str, paths: list[str]) -> list[str]:
    command = [program, "--line-length", "100", "--check", *paths]
    output = subprocess.run(command, capture_output=True, text=True).stderr
    return sorted(
        os.path.relpath(path, ROOT) for path in re.findall(r"^would reformat (.+)$", output, re.M)
    )


def main(arguments: list[str]) -> int:
    os.chdir(ROOT)
    for_cpp, for_python = clang_format(), shutil.which("black")
    if for_cpp is None or for_python is None:
        print(f"skipped: clang-format {CLANG_FORMAT_VERSION} or black is not installed")
        return SKIPPED
    paths = [path for path in listed_files(ROOT) if not path.startswith(ANSWERS)]
    cpp = [path for path in paths if pathlib.PurePath(path).suffix in CPP_SUFFIXES]
    wrong_cpp = unformatted_cpp(for_cpp, cpp)
    wrong_python = unformatted_python(for_python, [path for path in paths if path.endswith(".py")])
    if "--fix" in arguments:
        if wrong_cpp:
            subprocess.run([for_cpp, "-i", *wrong_cpp], check=True)
        if wrong_python:
            subprocess.run([for_python, "-q", "--line-length", "100", *wrong_python], check=True)
        return 0
    for name in wrong_cpp + wrong_python:
        print(f"{name}: not formatted; run python3 tools/format.py --fix")
    return 1 if wrong_cpp or wrong_python else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
