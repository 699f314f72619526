#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of code by room, against their budgets in tools/code_lines.toml, which `tidy` checks.

Only lines with code count: no blank lines, comments or docstrings; no tests, golden files, fuzz
targets, benchmarks, tasks, prompts or experiments of lab/. A room is a folder at the top, and in
src, device and python a folder below them. A change that exceeds a budget must shorten the room, or
raise the budget and give the reason; a budget far above its room is lowered.

usage: python3 tools/code_lines.py [--write]     (a table; --write makes the budgets what is there)
"""

from __future__ import annotations

import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGETS = "tools/code_lines.toml"
LANGUAGES = {
    **dict.fromkeys((".cc", ".h", ".hpp", ".cu", ".cuh", ".inc"), "C++"),
    ".py": "Python",
}
NOT_COUNTED = re.compile(
    r"^(tests|lab|data)/|(^|/)(tests|golden|testdata|testing|fakes)/|_(test|fuzz|bench)\.[a-z]+$"
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SPLIT = ("src", "device", "python")
UNIT = 50  # Budgets are multiples of it.
SLACK = 1.05  # The limit of a budget relative to its room, plus a few lines.
SLACK_LINES = 2 * UNIT
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Lines of code that each room may have (tools/code_lines.py).
"""
_NO_CODE = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
)
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Counts = dict[str, Counter[str]]


def in_cpp(text: str) -> int:
    text = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    return sum(1 for line in text.split("\n") if line.strip())


def in_python(text: str) -> int:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, _WITH_DOCSTRING) or ast.get_docstring(node, clean=False) is None:
            continue
        docstring = node.body[0]
        lines -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def room_of(path: str) -> str:
    parts = pathlib.PurePath(path).parts
    return "/".join(parts[: 2 if parts[0] in SPLIT and len(parts) > 2 else 1])


def counts_of(files: Iterable[tuple[str, str]]) -> Counts:
    """Lines by language and room, from paths and texts."""
    counts: Counts = {language: Counter() for language in LANGUAGES.values()}
    for path, text in files:
        language = LANGUAGES.get(pathlib.PurePath(path).suffix)
        if language is not None and not NOT_COUNTED.search(path):
            counts[language][room_of(path)] += (in_python if language == "Python" else in_cpp)(text)
    return counts


def breaches(counts: Counts, budgets: dict[str, dict[str, int]]) -> Iterator[str]:
    for language, rooms in counts.items():
        allowed = budgets.get(language, {})
        for room in sorted({*rooms, *allowed}):
            lines, budget = rooms[room], allowed.get(room, 0)
            if lines > budget:
                yield f"{room} has {lines} lines of {language}, more than its budget of {budget}"
            elif budget > lines * SLACK + SLACK_LINES:
                yield f"{room} has {lines} lines of {language}: lower its budget of {budget}"


def text_of(counts: Counts) -> str:
    text = HEAD
    for language, rooms in counts.items():
        counted = {room: lines for room, lines in sorted(rooms.items()) if lines}
        budgets = {room: (lines // UNIT + 2) * UNIT for room, lines in counted.items()}
        rows = [f'"{room}" = {budget}\n' for room, budget in budgets.items()]
        text += f'\n["{language}"]\n' + "".join(rows)
    return text


def listed_files(root: pathlib.Path, *options: str) -> list[str]:
    """The files that `git ls-files` lists and that exist."""
    command = ["git", "-C", str(root), "ls-files", "-z", *options]
    output = subprocess.run(command, check=True, capture_output=True).stdout.decode()
    return [path for path in output.split("\0") if path and (root / path).is_file()]


def main(arguments: list[str]) -> int:
    counts = counts_of(
        (path, (ROOT / path).read_text("utf-8"))
        for path in listed_files(ROOT)
        if pathlib.PurePath(path).suffix in LANGUAGES
    )
    if "--write" in arguments:
        (ROOT / BUDGETS).write_text(text_of(counts), "utf-8")
    for language, rooms in counts.items():
        for room, lines in sorted(rooms.items()):
            print(f"{language:7} {room:24} {lines:6}")
        print(f"{language:7} {'all':24} {sum(rooms.values()):6}")
    found = list(breaches(counts, tomllib.loads((ROOT / BUDGETS).read_text("utf-8"))))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
