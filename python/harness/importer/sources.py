# SPDX-License-Identifier: Apache-2.0
"""Finds what to import from a path: rows of a data set, task files, or a repository's modules.

Rows are JSON Lines or Parquet (with pyarrow) with the module's text in `python_code`, as KernelBook
has it, or in `code`, and its class in `entry_point`. A Python file that defines `get_inputs` is a
task already. Every class that derives from nn.Module in any other file is one candidate. Nothing is
run here.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE_BYTES_MAX = 1 << 20  # A Python file that is longer is generated.
TEXT_MEMBERS = ("python_code", "code", "pytorch_code")
_SKIPPED_FOLDERS = {".git", "build", "dist", "node_modules", "__pycache__", ".venv"}


class Refused(Exception):
    """The reason why something is not imported; the text is a row of the table."""


@dataclass(frozen=True)
class SourceFile:
    """One parsed file of a folder; `path` is relative to the folder `root`."""

    root: Path
    path: Path
    text: str
    tree: ast.Module


@dataclass(frozen=True)
class Folder:
    """All Python files of one path, by their relative paths, and the examples of its pages."""

    root: Path
    files: dict[Path, SourceFile] = field(default_factory=dict)
    unreadable: dict[Path, str] = field(default_factory=dict)
    examples: list[ast.Module] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """A text that is a whole program, and the class that is its model; "" if no class is named."""

    origin: str
    text: str
    entry_point: str = ""
    licence: str = ""


def parsed(text: str) -> ast.Module:
    """The tree of a text, without Python's warnings. Raises Refused if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"not Python 3: {type(error).__name__}") from None


def rows_of(path: Path) -> Iterator[Row | tuple[str, str]]:
    """The rows of a data set; (origin, reason) for each line without a row."""
    records = _parquet(path) if path.suffix == ".parquet" else _json_lines(path)
    for number, record in enumerate(records, 1):
        origin = f"{path.name}:{number}"
        text = next((record[name] for name in TEXT_MEMBERS if record.get(name)), None)
        if not isinstance(text, str):
            yield origin, f"no text in {', '.join(TEXT_MEMBERS)}"
            continue
        yield Row(origin, text, str(record.get("entry_point") or ""), _licence(record))


def _licence(record: dict[str, Any]) -> str:
    given = record.get("licenses") or record.get("license") or ""
    return ", ".join(map(str, given)) if isinstance(given, list) else str(given)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:  # Invalid UTF-8 is a ValueError, too.
        for line in lines:
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError:
                record = {}
            yield record if isinstance(record, dict) else {}


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise Refused(f"{path} needs pyarrow: pip install pyarrow") from None
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=256):
        yield from batch.to_pylist()


def folder_of(root: Path) -> Folder:
    """Every Python file below `root`, or the one file that it is."""
    if root.is_file() and root.suffix != ".py":
        raise Refused(f"{root} is neither a folder nor a .py, .jsonl or .parquet file")
    folder = Folder(root if root.is_dir() else root.parent)
    paths = sorted(_python_files(root)) if root.is_dir() else [root]
    for path in paths:
        relative = path.relative_to(folder.root)
        try:
            if path.stat().st_size > FILE_BYTES_MAX:
                raise Refused("a file of more than 1 MiB")
            text = path.read_text(encoding="utf-8")
            folder.files[relative] = SourceFile(folder.root, relative, text, parsed(text))
        except (Refused, OSError, UnicodeDecodeError) as error:
            folder.unreadable[relative] = str(error).split("\n", 1)[0]
    if root.is_dir():
        folder.examples.extend(_examples(root))
    return folder


def _python_files(root: Path) -> Iterator[Path]:
    for path in root.rglob("*.py"):
        if path.is_file() and not _SKIPPED_FOLDERS.intersection(path.relative_to(root).parts):
            yield path


def _examples(root: Path) -> Iterator[ast.Module]:
    """The Python examples of a repository's Markdown pages: they show how a module is built."""
    for page in sorted(root.glob("*.md"))[:20]:
        text = page.read_text(encoding="utf-8", errors="replace")
        for block in text.split("```python")[1:]:
            try:
                yield parsed(block.split("```", 1)[0])
            except Refused:
                continue


def is_task(file: SourceFile) -> bool:
    """True for a file that defines `get_inputs`, as a task does."""
    return any(isinstance(one, ast.FunctionDef) and one.name == "get_inputs"
               for one in file.tree.body)  # fmt: skip


def modules_of(folder: Folder) -> Iterator[tuple[SourceFile, ast.ClassDef]]:
    """The classes that derive from nn.Module, through others of the folder as well, and that have
    a forward."""
    classes = [
        (file, node)
        for file in folder.files.values()
        for node in file.tree.body
        if isinstance(node, ast.ClassDef)
    ]
    known: set[str] = set()
    size = -1
    while size != len(known):
        size = len(known)
        known.update(node.name for _, node in classes if _bases(node) & (known | {"Module"}))
    for file, node in classes:
        if node.name in known and _has_forward(node):
            yield file, node


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).split(".")[-1] for base in node.bases}


def _has_forward(node: ast.ClassDef) -> bool:
    return any(isinstance(one, ast.FunctionDef) and one.name == "forward" for one in node.body)


def licence_of(root: Path) -> str:
    """The first line of the licence's text with words in it, or ""."""
    for path in sorted([*root.glob("LICEN[SC]E*"), *root.glob("COPYING*")]):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.strip():
                return line.strip()[:80]
    return ""
