#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the shell commands of the pages as a reader would, and compares what they print.

  page_commands.py --musacoder build/dev/bin/musacoder [--all] [PAGE…]

Each fenced block names its language. In a block of the language `sh` every line is a command; in
one of the language `console` commands stand behind "$ ", and the other lines are what they print.
The commands of a page run one after the other in one shell, in a folder of its own that shows the
checkout, after the `export` lines of README.md. Each must end with 0, or as the comment says, and
print the lines that the page shows, in their order. Numbers and absolute paths may differ; a line
`…` leaves lines out, and `…` at the end of a line its rest.

A comment in front of a block says why its commands are not run, or how its last one ends:

  <!-- not run: it needs a GPU -->
  <!-- run by --all: ten minutes -->
  <!-- exits with 3 -->

A picture of tools/terminal_svg.py is a page, too: its description has the block that it shows.

All commands of the pages, also those in `…`, are held against the program's --help: subcommands
and options that it does not have are findings, and so are scripts that are not there.

$MC_SCENARIO_SHARE runs the commands of a share of the pages (sharing.py); options are held against
--help on all.
Prints a line for each finding; exits with 1 when there is one.
"""

from __future__ import annotations

import argparse
import functools
import html
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from sharing import share_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    *("README.md", "CONTRIBUTING.md", "*/README.md", "device/*/README.md"),
    *("docs/*.md", "docs/tutorials/*.md", "docs/*.svg"),
)
MADE = ("bundle", "wheel", "learn", "learn-quick")  # Folders that ./run.sh makes in build/.
MARK = "@@page_commands@@"
PAGE_SECONDS = {False: 300, True: 3600}  # Without and with --all.
# The program at the beginning of a command, and what follows it up to the command's end.
CALL = re.compile(
    r"(?:^|[|;&(])\s*(?:[A-Z_]+=\S* |time )*(?:\S*/)?(musacoder-learn|musacoder|M) ([^|;&>#\n]*)",
    re.MULTILINE,
)
NEVER, LONG = "not run", "run by --all"


@dataclass
class Command:
    line: int
    text: str
    shown: list[str] = field(default_factory=list)
    exemption: str = ""  # NEVER, LONG, or "" for commands that are always run.
    code: str = "0"  # The exit code that the page promises.


Finding = tuple[int, str]


def is_whole(text: str) -> bool:
    """A command goes on behind a backslash, and in an open quote, bracket or here-document."""
    checked = subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False)
    return not (text.endswith("\\") or checked.returncode or checked.stderr)


def commands_of_block(language: str, first: int, lines: list[str]) -> Iterator[Command]:
    command = None
    is_open = False
    for number, line in enumerate(lines, first):
        if command and is_open:
            command.text += "\n" + line
            is_open = not is_whole(command.text)
            continue
        is_command = language == "sh" or line.startswith("$ ")
        if is_command and line.strip():
            if command:
                yield command
            command = Command(number, line.removeprefix("$ "))
            is_open = not is_whole(command.text)
        elif command and line.strip():
            command.shown.append(line)
    if command:
        yield command


def read_page(text: str) -> tuple[list[Command], list[Finding]]:
    """The commands of the blocks, and what is wrong with the blocks themselves."""
    commands: list[Command] = []
    findings: list[Finding] = []
    lines = text.split("\n")
    start = None
    for index, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = index
            continue
        language = lines[start].removeprefix("```")
        if not language:
            findings.append((start + 1, "a block without a language: sh, console, text, …"))
        if language in ("sh", "console"):
            note = re.fullmatch(rf"<!-- ({NEVER}|{LONG}): .+ -->", lines[start - 1])
            end = re.fullmatch(r"<!-- exits with (\d+) -->", lines[start - 1])
            block = [*commands_of_block(language, start + 2, lines[start + 1 : index])]
            for command in block:
                command.exemption = note[1] if note else ""
            if end and block:
                block[-1].code = end[1]
            commands += block
        start = None
    return commands, findings


def normal(line: str) -> str:
    line = re.sub(r"(?<![\w.])/[\w./-]+", "/", line)
    return " ".join(re.sub(r"\d+(\.\d+)?", "0", line).split())


def missing_line(shown: list[str], printed: str) -> str | None:
    """The first line of `shown` that is not printed behind the ones before it."""
    rest = iter([normal(line) for line in printed.split("\n")])
    for line in shown:
        wanted = normal(line.removesuffix("…"))
        is_part = line.endswith("…")
        if not any(got.startswith(wanted) if is_part else got == wanted for got in rest):
            return line
    return None


def scripts_and_options(text: str, musacoder: Path) -> Iterator[str]:
    """The names in a command that the checkout or the program does not have."""
    text = text.replace("\\\n", " ")
    for script in re.findall(r"(?<![\w/.])(?:tools|tests|examples|lab)/[\w/]+\.(?:py|sh)\b", text):
        if not (ROOT / script).exists():
            yield f"there is no {script}"
    for name, arguments in CALL.findall(text):
        program = musacoder.parent / ("musacoder" if name == "M" else name)
        if not program.exists():
            continue
        names = re.findall(r"(?<!\S)[a-z]+(?!\S)", arguments)
        subcommand = tuple(names[: 2 if names[:1] == ["task"] else 1])
        texts = [help_of(program, chosen) for chosen in ((), subcommand)]
        if "" in texts:
            yield f"{program.name} has no subcommand {' '.join(subcommand)}"
            continue
        if subcommand == ("serve",):  # Its other options are those of eval.
            texts.append(help_of(program, ("eval",)))
        for option in re.findall(r"(?<!\S)--[a-z][\w-]*", arguments):
            if not any(re.search(rf"{option}(?![\w-])", text) for text in texts):
                yield f"{' '.join([program.name, *subcommand])} has no option {option}"


@functools.cache
def help_of(program: Path, subcommand: tuple[str, ...]) -> str:
    command = [str(program), *subcommand, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def spans_of(text: str) -> Iterator[tuple[int, str]]:
    """Code within sentences and tables."""
    is_fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        is_fenced ^= line.startswith("```")
        if not is_fenced:
            yield from ((number, span) for span in re.findall(r"`([^`]+)`", line))


def show_checkout(folder: Path, musacoder: Path) -> None:
    """The checkout by links: what a command writes beside them vanishes with the folder."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], check=True, capture_output=True, text=True
    ).stdout.split("\n")
    for name in {Path(path).parts[0] for path in listed if path}:
        (folder / name).symlink_to(ROOT / name)
    (folder / "build").mkdir()
    (folder / "build/dev").symlink_to(musacoder.parent.parent)
    for name in MADE:
        (folder / "build" / name).symlink_to(ROOT / "build" / name)


def run_commands(commands: list[Command], musacoder: Path, seconds: int) -> Iterator[Finding]:
    exports = re.findall(r"^export .*", (ROOT / "README.md").read_text(), re.MULTILINE)
    parts = [f"{command.text}\nprintf '\\n{MARK} %s\\n' $?\n" for command in commands]
    with tempfile.TemporaryDirectory(prefix="pages-") as name:
        folder = Path(name) / "checkout"
        folder.mkdir()
        show_checkout(folder, musacoder)
        script = Path(name) / "script"
        script.write_text("\n".join([*exports, "exec 2>&1", *parts]))
        done = subprocess.run(
            ["timeout", "--kill-after=5", str(seconds), "bash", str(script)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            env={key: value for key, value in os.environ.items() if key != "MUSACODER"},
            check=False,
        )
    ended = re.findall(rf"(?s)(.*?)\n{MARK} (\d+)\n", done.stdout)
    for command, (printed, code) in zip(commands, ended):
        missing = missing_line(command.shown, printed)
        if code != command.code:
            yield command.line, f"exits with {code}: {command.text}\n{printed.strip()[-2000:]}"
        elif missing is not None:
            yield command.line, f"does not print {missing!r}: {command.text}\n{printed.strip()}"
    if len(ended) < len(commands):
        late = commands[len(ended)]
        yield late.line, f"did not end within {seconds} s of its page: {late.text}"


def check_page(path: Path, musacoder: Path, exemptions: Container[str]) -> tuple[str, int]:
    """The findings as text, and how many commands ran: those whose exemption is among these."""
    text = path.read_text()
    if path.suffix == ".svg":
        text = html.unescape(text.partition("<desc>")[2].partition("</desc>")[0])
    commands, findings = read_page(text)
    run = [one for one in commands if one.exemption in exemptions]
    named = [*((one.line, one.text) for one in commands), *spans_of(text)]
    findings += [
        (line, what) for line, code in named for what in scripts_and_options(code, musacoder)
    ]
    if run:
        findings += run_commands(run, musacoder, PAGE_SECONDS[LONG in exemptions])
    name = path.relative_to(ROOT)
    return "".join(f"{name}:{line}: {what}\n" for line, what in sorted(findings)), len(run)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--musacoder", type=Path, required=True)
    parser.add_argument("--all", action="store_true", help="run the long commands as well")
    parser.add_argument("pages", nargs="*", type=Path, help="default: all")
    arguments = parser.parse_args()
    musacoder = arguments.musacoder.resolve()
    pages = [page.resolve() for page in arguments.pages] or [
        path for pattern in PAGES for path in sorted(ROOT.glob(pattern))
    ]
    run = share_of(pages, "MC_SCENARIO_SHARE")
    exemptions = ("", LONG) if arguments.all else ("",)
    with ThreadPoolExecutor(2) as pool:
        results = [
            *pool.map(
                lambda page: check_page(page, musacoder, exemptions if page in run else ()), pages
            )
        ]
    print(*(text for text, _ in results), sep="", end="")
    print(f"{sum(number for _, number in results)} commands of {len(pages)} pages were run")
    return 1 if any(text for text, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
