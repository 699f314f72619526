# SPDX-License-Identifier: Apache-2.0
"""A patch that replaces the original by the optimized module, for `git apply`."""

from __future__ import annotations

import difflib
from pathlib import Path

NO_NEWLINE = "\n\\ No newline at end of file\n"


def patch_of(original: Path, module: str) -> str:
    """The unified diff; its paths begin at the top of the repository, if there is one."""
    path = original.resolve()
    tops = [folder for folder in path.parents if (folder / ".git").exists()]
    name = path.relative_to(tops[0] if tops else path.parent).as_posix()
    with path.open(encoding="utf-8", newline="") as file:
        before = file.read()
    lines = difflib.unified_diff(_lines(before), _lines(module), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else line + NO_NEWLINE for line in lines)


def _lines(text: str) -> list[str]:
    """The lines as in git, which end only at a line feed."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
