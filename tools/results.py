#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headline figures of the project, and the page that shows them.

  tools/results.py check --musacoder build/dev/bin/musacoder
  tools/results.py page

lab/results/*.jsonl has the figures, a file for each section of the page, a JSON object a line:

- claim, value, unit: a sentence that the value completes; unit is "" or follows the value.
- interval: null, or the ends of the 95 % interval in the unit of the value.
- bar: the target that was set before the measurement; "" if there was none.
- machine, commit, date, kind: where and when the command printed it; kind is cpu or gpu.
- command: that command. Its programs, subcommands, options and scripts must exist today.

`check` exits with 1 where a row is wrong, or the page is not the one of these rows; `page` writes
docs/results.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from page_commands import scripts_and_options  # noqa: E402

Row = dict[str, Any]
FOLDER = ROOT / "lab/results"
PAGE = ROOT / "docs/results.md"
TEXTS = ("claim", "unit", "bar", "machine", "commit", "date", "command", "kind")
MEMBERS = {*TEXTS, "value", "interval"}
SECTIONS = {
    "verdicts": "Verdicts are right",
    "speed": "Verdicts and kernels are fast",
    "data": "Data is true",
    "learning": "Models learn from it",
}


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def form_findings(row: Row) -> Iterator[str]:
    """The faults of a row apart from its command."""
    if set(row) != MEMBERS:
        yield f"members: {', '.join(sorted(set(row) ^ MEMBERS))}"
        return
    if not all(isinstance(row[name], str) for name in TEXTS) or not is_number(row["value"]):
        yield "value is a number, interval two numbers or null, all else text"
        return
    if row["kind"] not in ("cpu", "gpu"):
        yield f"kind: cpu or gpu, not {row['kind']}"
    if not re.fullmatch(r"[0-9a-f]{7,40}", row["commit"]):
        yield f"commit: not {row['commit']!r}"
    try:
        datetime.date.fromisoformat(row["date"])
    except ValueError:
        yield f"date: not {row['date']!r}"
    ends = row["interval"]
    if ends is None:
        return
    is_pair = isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends))
    if not is_pair or not ends[0] <= row["value"] <= ends[1]:
        yield f"interval: not two ends around {row['value']}"


def scripts_options(script: Path, words: list[str]) -> Iterator[str]:
    """The long options among the words that a script of ours does not have, by its text."""
    text = script.read_text()
    if script.name == "run.sh":  # It passes its options to one of these.
        scripts = [*ROOT.glob("examples/*.py"), *ROOT.glob("lab/ladder/*.py")]
        text += "".join(path.read_text() for path in scripts)
    for word in words:
        option = word.partition("=")[0]
        setting = option.removeprefix("--").replace("-", "_")  # Options of learn.py are settings.
        if option.startswith("--") and option not in text and f" {setting}: " not in text:
            yield f"{script.name} has no option {option}"


def program_findings(words: list[str]) -> Iterator[str]:
    """The faults of a command's first word and script."""
    program, *rest = words
    program = re.sub(r"^build/dev/bin/(?=musacoder)", "", program)
    if program in ("musacoder", "musacoder-learn", "ctest"):
        return  # --help shows their options; tests have patterns.
    if program == "python3" and rest:
        program, *rest = rest
    name = program.removeprefix("build/dev/bin/")
    if name != program:
        is_layer = name.endswith("_test") and (ROOT / "src" / name.removesuffix("_test")).is_dir()
        if not is_layer and not any(ROOT.glob(f"*/**/{name}.cc")):
            yield f"there is no program {name}"
        return
    script = ROOT / program.removeprefix("./")
    if not script.is_file():
        yield f"there is no {program}"
        return
    if script.name == "run.sh" and not re.search(rf"^  {re.escape(rest[0])}\b", script.read_text(),
                                                 re.MULTILINE):  # fmt: skip
        yield f"run.sh has no command {rest[0]}"
    yield from scripts_options(script, rest)


def command_findings(command: str, musacoder: Path) -> Iterator[str]:
    """The programs, scripts and options of a command that do not exist."""
    yield from scripts_and_options(command, musacoder)
    for part in re.split(r"&&|;|\|", command):
        words = [word for word in shlex.split(part) if not re.fullmatch(r"[A-Z_]+=.*", word)]
        if not words:
            yield "an empty command"
        else:
            yield from program_findings(words[1:] if words[0] == "time" else words)


def findings_of(row: Row, musacoder: Path) -> Iterator[str]:
    wrong = [*form_findings(row)]
    yield from wrong
    if not wrong:
        yield from command_findings(row["command"], musacoder)


def read_sections() -> dict[str, list[Row]]:
    """The rows of each file.  Raises ValueError for a file that is no section."""
    sections = {}
    for path in sorted(FOLDER.glob("*.jsonl")):
        if path.stem not in SECTIONS:
            raise ValueError(f"{path.name}: no section of this name; see SECTIONS")
        sections[path.stem] = [json.loads(line) for line in path.read_text().splitlines()]
    return sections


# ---- The page -----------------------------------------------------------------------------------


def figure(row: Row) -> str:
    value = f"{row['value']:,}".replace(",", "\u202f")
    shown = f"**{value}**" + (f" {row['unit']}" if row["unit"] else "")
    return shown if row["interval"] is None else f"{shown} {row['interval']}"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def page(sections: dict[str, list[Row]]) -> str:
    num = sum(map(len, sections.values()))
    lines = [
        "# Results",
        "",
        f"{num} figures, what was wanted of each, and the command that printed it. "
        "`tools/results.py page` writes this page from `lab/results/*.jsonl`; "
        "`tools/results.py check` is a test and refuses a row whose command is gone. "
        "Intervals are of 95 %. Failures and experiments are in the lab notes (`lab/README.md`), "
        "the public answers that were judged in `lab/audit`.",
    ]
    for name, title in SECTIONS.items():
        rows = sections.get(name, [])
        lines += ["", f"## {title}", "", "| claim | figure | wanted |", "|---|---|---|"]
        lines += [
            f"| {i}: {cell(row['claim'])} | {cell(figure(row))} | {cell(row['bar']) or '–'} |"
            for i, row in enumerate(rows, 1)
        ]
        lines += ["", "| by | on | at |", "|---|---|---|"]
        lines += [
            f"| {i}: `{cell(row['command'])}` | {cell(row['machine'])} | {row['date']}, "
            f"{row['commit'][:8]} |"
            for i, row in enumerate(rows, 1)
        ]
    return "\n".join(lines) + "\n"


def check(musacoder: Path) -> list[str]:
    sections = read_sections()
    found = [
        f"lab/results/{name}.jsonl:{number}: {what}"
        for name, rows in sections.items()
        for number, row in enumerate(rows, 1)
        for what in findings_of(row, musacoder)
    ]
    if not found and (not PAGE.exists() or PAGE.read_text() != page(sections)):
        found.append("docs/results.md is not the page of lab/results: tools/results.py page")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page", help="write docs/results.md")
    checking = commands.add_parser("check", help="refuse rows that are wrong")
    checking.add_argument("--musacoder", type=Path, required=True)
    options = parser.parse_args()
    try:
        if options.command == "page":
            PAGE.write_text(page(read_sections()))
            return 0
        found = check(options.musacoder.resolve())
    except ValueError as error:
        found = [f"error: lab/results: {error}"]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
