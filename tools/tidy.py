#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `tidy` test: rules of the house that no compiler checks.

Looks at every file that git tracks and at new ones in the folders of the source, prints
"path:line: rule" for each breach, and exits with 1 when there is one.  Changes nothing.

usage: python3 tools/tidy.py [ROOT]
"""

import os
import pathlib
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import code_lines

LINE_COLUMNS_MAX = 100
FILE_BYTES_MAX = 1 << 20
SPDX = "SPDX-License-Identifier: Apache-2.0"
CODE_SUFFIXES = {".cc", ".h", ".hpp", ".cuh", ".cu", ".py", ".sh", ".cmake"}
BUILD_SUFFIXES = {".o", ".a", ".so", ".gch", ".pyc", ".whl", ".deb", ".exe", ".log"}
# Answers of models are kept as they were written: any line ends, any length.
ANSWERS = ("tests/corpus/", "src/reward/golden/", "tests/golden/")
THIRD_PARTY = ("nlohmann/", "fmt/", "sodium", "seccomp", "boost/", "CLI/", "hiredis", "sqlite3")
# Candidates and ctypes include these.
NEEDS_NO_INCLUDER = ("device/facade/include/",)

# A file or folder of the source that prose names.
SOURCE_PATH = re.compile(r"`((?:src|data|python|device|tools)/[\w./-]+)`")

# Rooms whose code must work for every backend; and the files there that belong to one backend, list
# all of them, or mean something else: the language, or the device for training.
BACKEND_BLIND = re.compile(
    r"python/harness/.*\.py$|src/(cli|compile|core|eval|execute|reward|timing|worker)/"
)
OF_BACKENDS = re.compile(
    r"(^|/)(cuda|cpu|musa|ptx)_[^/]*$"
    r"|^python/harness/(tests/|forge/|worker/backends\.py)|_test\.cc$|^src/cli/learn/"
)
NAMES_BACKEND = re.compile(
    r"(==|!=) *(task::)?Backend::k|\bBackend::k(Cuda|Musa)\b|\"(cuda|musa)\""
)
NAMES_CUDA = re.compile(
    r"\btorch\.(backends\.)?(cuda|cudnn|musa)\b|[\"'](cuda|musa)(:\d+)?[\"']|[=!]= *[\"']cpu[\"']"
)

# A comment is a sentence with a noun as its subject. A code word may begin one (`mc_guard_remove`,
# `x.h`), and directives to tools and to the preprocessor are not comments.
COMMENT_STARTS_BADLY = re.compile(
    r"(Of|Who|What|Whether|Where|By|As|[a-z][a-z'-]*)(?=[\s,.;:!?)]|$)"
)
DIRECTIVE = re.compile(
    r'clang-format|cmake-format|NOLINT|extern "C"|namespace\b|usage:'
    r"|(endif|fmt|ifndef|include|isort|mypy|noqa|pragma|shellcheck|type)\b"
)

TABLE_SEPARATOR = re.compile(r"\|(\s*:?-+:?\s*\|)+\s*")

Finding = tuple[int, str]


@dataclass(frozen=True)
class File:
    path: str
    text: str

    @property
    def suffix(self) -> str:
        return pathlib.PurePath(self.path).suffix

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def is_ours(self) -> bool:
        return not self.path.startswith(ANSWERS)


Rule = Callable[[File], Iterator[Finding]]


def has_licence(file: File) -> Iterator[Finding]:
    if file.suffix not in CODE_SUFFIXES and not file.path.endswith("CMakeLists.txt"):
        return
    first = file.lines[1] if file.text.startswith("#!") and len(file.lines) > 1 else file.lines[0]
    if SPDX not in first:
        yield 1, f"the first line is not a comment with {SPDX}"


def includes_no_parent(file: File) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        if file.suffix in {".cc", ".h"} and re.match(r'\s*#\s*include\s*"\.\./', line):
            yield number, 'include "../..." would slip past the layers'


def has_no_bare_todo(file: File) -> Iterator[Finding]:
    if file.suffix not in CODE_SUFFIXES or not file.is_ours:
        return
    for number, line in enumerate(file.lines, 1):
        if re.search(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))", line):
            yield number, "a note to do something names no issue"


def fits_the_page(file: File) -> Iterator[Finding]:
    if file.suffix not in {".cc", ".h", ".py", ".cmake"} or not file.is_ours:
        return
    for number, line in enumerate(file.lines, 1):
        if len(line) > LINE_COLUMNS_MAX:
            yield number, f"{len(line)} columns"
        if line != line.rstrip():
            yield number, "ends in white space"
        if "\t" in line:
            yield number, "holds a tab"


def has_its_guard(file: File) -> Iterator[Finding]:
    if not (file.path.startswith("src/") and file.suffix == ".h"):
        return
    guard = "MC_" + re.sub(r"\W", "_", file.path.removeprefix("src/")).upper() + "_"
    if f"#ifndef {guard}\n#define {guard}\n" not in file.text:
        yield 1, f"the guard is not {guard}"


def branches_on_backend(file: File) -> Iterator[Finding]:
    """Code must not branch on the backend: a new backend would have to be added everywhere."""
    if not BACKEND_BLIND.match(file.path) or OF_BACKENDS.search(file.path):
        return
    is_python = file.suffix == ".py"
    place = "python/harness/worker/place.py" if is_python else "src/eval/machine.h"
    for number, line in enumerate(file.lines, 1):
        code = line if is_python else line.partition("//")[0]
        if (NAMES_CUDA if is_python else NAMES_BACKEND).search(code):
            yield number, f"a branch on the backend; {place} has what differs"


def header_hides_libraries(file: File) -> Iterator[Finding]:
    if not (file.path.startswith("src/") and file.suffix == ".h"):
        return
    for number, line in enumerate(file.lines, 1):
        found = re.match(r"\s*#\s*include\s*[<\"]([^>\"]+)", line)
        if found and found[1].startswith(THIRD_PARTY) and not file.path.startswith("src/cli/"):
            yield number, f"a header includes {found[1]}: only a .cc may"
        if re.match(r"\s*using namespace\b", line):
            yield number, "using namespace in a header"


def comments_of(file: File) -> Iterator[Finding]:
    """The first line of each comment and of its paragraphs, without its mark."""
    mark = "//" if file.suffix in {".cc", ".h", ".hpp", ".cuh", ".cu"} else "#"
    goes_on = False
    for number, line in enumerate(file.lines, 1):
        code, found, text = line.partition(mark)
        is_whole_line = bool(found) and not code.strip()
        is_behind_code = bool(found) and code.endswith("  ") and code.count('"') % 2 == 0
        if (is_whole_line and not goes_on) or (is_behind_code and not is_whole_line):
            yield number, text.strip()
        goes_on = is_whole_line and text.strip() not in ("", SPDX)


def comments_begin_with_a_noun(file: File) -> Iterator[Finding]:
    if file.suffix not in CODE_SUFFIXES or not file.is_ours:
        return
    for number, text in comments_of(file):
        found = COMMENT_STARTS_BADLY.match(text)
        if found and not DIRECTIVE.match(text):
            yield (
                number,
                f"a comment begins with {found[1]!r}: a noun is its subject, with a capital letter",
            )


def tables_have_headers(file: File) -> Iterator[Finding]:
    """A row after an empty line is not part of the table above: pages show its bars as text."""
    if file.suffix != ".md" or not file.is_ours:
        return
    is_fenced = False
    above = ""
    for number, (line, below) in enumerate(zip(file.lines, [*file.lines[1:], ""]), 1):
        is_fenced ^= line.startswith("```")
        is_first_row = line.startswith("|") and not above.startswith("|")
        if is_first_row and not is_fenced and not TABLE_SEPARATOR.fullmatch(below):
            yield number, "a table begins without a header: join it to the table above"
        above = line


RULES: tuple[Rule, ...] = (
    has_licence,
    includes_no_parent,
    has_no_bare_todo,
    fits_the_page,
    has_its_guard,
    branches_on_backend,
    header_hides_libraries,
    comments_begin_with_a_noun,
    tables_have_headers,
)


def machine_paths(root: pathlib.Path) -> list[str]:
    """Directories that exist on this machine only: the checkout, what holds it, the user's own."""
    checkout = root.resolve()
    home = pathlib.Path.home()
    shared = {home, home.parent}
    holders = [
        path
        for path in (checkout, checkout.parent)
        if path not in shared and len(path.parts) > 2  # "/opt" is on every machine.
    ]
    return [str(path) for path in (*holders, home / ".cache", home / ".local")]


def machine_names(files: list[File], root: pathlib.Path) -> Iterator[str]:
    alternatives = "|".join(re.escape(path) for path in machine_paths(root))
    pattern = re.compile(rf"(?<![\w.~$}}/-])({alternatives})(?![\w-])")
    for file in files:
        for number, line in enumerate(file.lines, 1):
            if pattern.search(line):
                yield f"{file.path}:{number}: names a directory of this machine"


def unused_headers(files: list[File]) -> Iterator[str]:
    included = {
        name for file in files for name in re.findall(r'#\s*include\s*[<"]([^>"]+)[>"]', file.text)
    }
    for file in files:
        name = file.path.removeprefix("src/")
        if file.suffix != ".h" or file.path.startswith(NEEDS_NO_INCLUDER):
            continue
        if not any(path == name or name.endswith("/" + path) for path in included):
            yield f"{file.path}:1: nobody includes this header"


def missing_documents(files: list[File], root: pathlib.Path) -> Iterator[str]:
    for file in files:
        if file.suffix not in CODE_SUFFIXES | {".md"} or not file.is_ours:
            continue
        for number, line in enumerate(file.lines, 1):
            for name in re.findall(r"\bdocs/[\w/-]+\.(?:md|json)\b", line):
                if not (root / name).exists():
                    yield f"{file.path}:{number}: there is no {name}"


def unrunnable_programs(files: list[File], root: pathlib.Path) -> Iterator[str]:
    """Pages call a program by its path alone."""
    for file in files:
        if file.text.startswith("#!") != os.access(root / file.path, os.X_OK):
            yield f"{file.path}:1: a program has a #! line and the run bit, others neither"


def anchors_of(text: str) -> set[str]:
    """The anchors of a Markdown page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def generated_pages(files: list[File]) -> set[str]:
    """The pages that the site has and git does not; its build checks their headings."""
    writers = [file.text for file in files if file.path == "tools/reference.py"]
    found = (name for text in writers for name in re.findall(r'"(reference/\w+\.md)"', text))
    return {f"docs/{name}" for name in found}


def broken_links(files: list[File], root: pathlib.Path) -> Iterator[str]:
    """Broken links between Markdown pages, and source paths in `...` that do not exist. In a
    decision only links are checked, since its text is of its time.
    """
    generated = generated_pages(files)
    for file in files:
        if file.suffix != ".md" or not file.is_ours:
            continue
        is_past = file.path.startswith("docs/decisions/")
        for number, line in enumerate(file.lines, 1):
            for link in re.findall(r"\]\((?!https?:)([^)\s]*)\)", line):
                name, _, anchor = link.partition("#")
                page = root / file.path
                target = page.parent / name if name else page
                if os.path.relpath(target, root) in generated:
                    continue
                if not target.exists():
                    yield f"{file.path}:{number}: there is no {name}"
                elif anchor and anchor not in anchors_of(target.read_text()):
                    yield f"{file.path}:{number}: {name} has no heading #{anchor}"
            for name in SOURCE_PATH.findall(line) if file.path.startswith("docs/") else ():
                if not is_past and not (root / name).exists():
                    yield f"{file.path}:{number}: there is no {name}"


def breaches(paths: list[str], root: pathlib.Path) -> Iterator[str]:
    files = []
    for path in paths:
        data = (root / path).read_bytes()
        if len(data) > FILE_BYTES_MAX or pathlib.PurePath(path).suffix in BUILD_SUFFIXES:
            yield f"{path}:1: build output or too large to be source ({len(data)} bytes)"
            continue
        files.append(File(path, data.decode("utf-8", "replace")))
    for file in files:
        for rule in RULES:
            for number, what in rule(file):
                yield f"{file.path}:{number}: {what}"
    yield from machine_names(files, root)
    yield from unused_headers(files)
    yield from missing_documents(files, root)
    yield from broken_links(files, root)
    yield from unrunnable_programs(files, root)
    budgets = [file.text for file in files if file.path == code_lines.BUDGETS]
    for text in budgets:
        counts = code_lines.counts_of((file.path, file.text) for file in files)
        for breach in code_lines.breaches(counts, tomllib.loads(text)):
            yield f"{code_lines.BUDGETS}:1: {breach}"


def known_to_git(root: pathlib.Path) -> list[str]:
    """The tracked files, and new files in the source folders.  The pages' commands create verdicts,
    prepared files and virtual environments elsewhere: these are the user's.
    """
    tracked = set(code_lines.listed_files(root))
    rooms = {pathlib.PurePath(path).parts[0] for path in tracked if "/" in path}
    new = code_lines.listed_files(root, "--others", "--exclude-standard")
    environments = [path.removesuffix("pyvenv.cfg") for path in new if path.endswith("/pyvenv.cfg")]
    ours = {
        path
        for path in new
        if pathlib.PurePath(path).parts[0] in rooms and not path.startswith(tuple(environments))
    }
    return sorted(tracked | ours)


def main(arguments: list[str]) -> int:
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[1])
    found = list(breaches(known_to_git(root), root))
    print("\n".join(found) if found else "tidy")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
