#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the answer in this folder. Python's standard library is enough.

    ./judge

The files of answer/ become one module, judged.py, which is what is judged. The judge is the service
of $MUSACODER_URL (its token in $MUSACODER_TOKEN), or, where that is not set, `musacoder eval` of
this machine ($MUSACODER, with $MUSACODER_OPTIONS).

Exit code: 0 the answer passes, 1 there is no verdict, 2 the task or this judge was changed or the
answer cannot be read, 3 the answer fails.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASSES, NO_VERDICT, BAD_INPUT, FAILS = 0, 1, 2, 3
MANIFEST = ".workspace/manifest.json"
MODULE = "answer.py"
SUFFIXES = {".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".inl"}
FILES_MAX, BYTES_MAX = 64, 1 << 20
_WRITE = """}.items():
    _os.makedirs(_os.path.dirname(_name) or ".", exist_ok=True)
    with open(_name, "w") as _file:
        _file.write(_text)

"""


class Refused(Exception):
    """The folder cannot be judged."""


def hash_of(path: Path) -> str:
    """The hash of a protected file; "" if there is no such file."""
    if path.is_symlink() or not path.is_file():
        return ""
    return hashlib.blake2b(path.read_bytes(), digest_size=32).hexdigest()


def changed_files(folder: Path, hashes: dict[str, str]) -> list[str]:
    return [name for name, wanted in hashes.items() if hash_of(folder / name) != wanted]


def require_unchanged(folder: Path, hashes: dict[str, str]) -> None:
    """Raises Refused with the names of changed protected files."""
    changed = changed_files(folder, hashes)
    if changed:
        raise Refused(f"{', '.join(changed)}: only the files in answer/ may be changed")


# ---- Packing ------------------------------------------------------------------------------------


def sources_of(answer: Path) -> dict[str, str]:
    """The texts of a folder's files for load(), by their paths there."""
    found: dict[str, str] = {}
    num_bytes = 0
    for path in sorted(answer.rglob("*")):
        name = path.relative_to(answer).as_posix()
        if path.is_symlink():
            raise Refused(f"answer/{name}: a link is not judged")
        if path.is_dir() or path.suffix not in SUFFIXES:
            continue
        num_bytes += path.stat().st_size
        if len(found) == FILES_MAX or num_bytes > BYTES_MAX:
            raise Refused(f"answer/: more than {FILES_MAX} files, or {BYTES_MAX >> 20} MiB")
        found[name] = read(path)
    return found


def read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path.name}: {error}") from None


def literal(text: str) -> str:
    """A Python literal, raw if possible, so that the judge finds the text's lines."""
    is_plain = "'''" not in text and "\r" not in text and "\0" not in text
    return f"r'''{text}'''" if is_plain and not text.endswith(("'", "\\")) else repr(text)


def line_for_code(module: str) -> int:
    """The number of lines that must stay at the module's start: a docstring, and imports from
    __future__.
    """
    try:
        body = ast.parse(module).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    line = 0
    for number, node in enumerate(body):
        is_docstring = number == 0 and isinstance(node, ast.Expr)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_docstring and not is_future:
            break
        line = node.end_lineno or 0
    return line


@dataclass
class Packed:
    """One module that writes the other files of the answer beside itself."""

    text: str = ""
    places: dict[int, str] = field(
        default_factory=dict
    )  # Lines of the files, by those of the text.

    def add(self, text: str, name: str = "", line: int = 1) -> None:
        """name: the file of which the text has the lines from `line` on."""
        first = self.text.count("\n") + 1
        for number in range(len(text.splitlines()) if name else 0):
            self.places[first + number] = f"answer/{name}:{line + number}"
        self.text += text

    def located(self, feedback: str) -> str:
        """The feedback with source locations in the original files."""

        def place(found: re.Match[str]) -> str:
            return self.places.get(int(found[1]), found[0])

        return re.sub(r"\bcandidate:(\d+)", place, feedback)


def packed(module: str, sources: dict[str, str]) -> Packed:
    lines = module.splitlines(keepends=True)
    at = line_for_code(module) if sources else 0
    made = Packed()
    made.add("".join(lines[:at]), MODULE)
    if sources:
        made.add("" if made.text.endswith("\n") or not at else "\n")
        made.add("import os as _os\n\nfor _name, _text in {\n")
        for name, text in sources.items():
            made.add(f"    {name!r}: ")
            made.add(literal(text), name)
            made.add(",\n")
        made.add(_WRITE)
    made.add("".join(lines[at:]), MODULE, at + 1)
    return made


def answer_of(folder: Path) -> Packed:
    """The answer as one module. Raises Refused."""
    path = folder / "answer" / MODULE
    if path.is_symlink() or not path.is_file():
        raise Refused(f"answer/{MODULE} is missing")
    return packed(read(path), sources_of(folder / "answer"))


# ---- Asking -------------------------------------------------------------------------------------


def ask_service(folder: Path, answer: str, url: str) -> dict[str, Any]:
    """The reply of the first service of $MUSACODER_URL."""
    sys.path.insert(0, str(folder / ".workspace"))
    service: Any = __import__("service")
    question = {"task": {"code": (folder / "task.py").read_text()}, "answer": answer}
    reply: dict[str, Any] = service.verdict_on(question, url.rstrip("/"))
    return reply


def ask_program(folder: Path) -> dict[str, Any]:
    """The reply of `musacoder eval` on this machine."""
    program = os.environ.get("MUSACODER") or "musacoder"
    options = shlex.split(os.environ.get("MUSACODER_OPTIONS", ""))
    with tempfile.TemporaryDirectory() as out:
        file = Path(out) / "verdict.jsonl"
        command = [program, "eval", *options, "--task", str(folder / "task.py"), "--out", str(file),
                   str(folder / "judged.py")]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, check=False)  # fmt: skip
        if done.returncode != 0:
            raise OSError(done.stderr.strip().splitlines()[-1] if done.stderr else "no verdict")
        reply: dict[str, Any] = json.loads(file.read_text())
        return reply


def judge(folder: Path) -> int:
    require_unchanged(folder, json.loads((folder / MANIFEST).read_text()))
    answer = answer_of(folder)
    (folder / "judged.py").write_text(answer.text)
    urls = os.environ.get("MUSACODER_URL", "").replace(",", " ").split()
    reply = ask_service(folder, answer.text, urls[0]) if urls else ask_program(folder)
    outcome = reply["verdict"]["outcome"]["kind"]
    print(f"outcome: {outcome}\nreward: {reply['reward']}\n{answer.located(reply['feedback'])}")
    if outcome == "pass":
        return PASSES
    return NO_VERDICT if reply["reward"] is None else FAILS


def main() -> int:
    try:
        return judge(Path(__file__).resolve().parent)
    except (Refused, ValueError, KeyError) as error:
        print(f"judge: {error}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"judge: {error}", file=sys.stderr)
        return NO_VERDICT


if __name__ == "__main__":
    sys.exit(main())
