# SPDX-License-Identifier: Apache-2.0
"""A class as a text that needs no other file: the definitions that it uses are copied along.

A name that a definition reads is looked up among the statements of its own file; an import from the
same repository, or from another one of those that are imported, is followed to the statement there,
and any other import is kept. If two files use the same name, the second definition is renamed. A
text is refused if a definition needs a package other than Python, PyTorch, NumPy and einops; if
only a function's body mentions the package, running the text shows whether the body is reached.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.importer.sources import Folder, Refused, SourceFile

LINES_MAX = 2000  # A module that needs more than this is a whole library.
PACKAGES = frozenset(sys.stdlib_module_names) | {"torch", "numpy", "einops"}


@dataclass(frozen=True, eq=False)
class _Statement:
    file: SourceFile
    node: ast.stmt

    def names(self) -> set[str]:
        """The names that it binds in its file."""
        return set(_bound(self.node))


@dataclass
class _Closure:
    folders: Sequence[Folder]  # Folders whose imports are followed; the class's own is first.
    taken: dict[str, str] = field(default_factory=dict)  # Names of the text, and their meanings.
    lines: set[str] = field(default_factory=set)  # Imports.
    missing: dict[str, str] = field(default_factory=dict)  # Names of packages that are missing.
    statements: list[_Statement] = field(default_factory=list)
    # The names in the text, by file and by the names there.
    names: dict[Path, dict[str, str]] = field(default_factory=dict)

    def add(self, file: SourceFile, name: str, hops: int = 0) -> str:
        """Adds all that `name` needs, where `file` binds it; returns its name in the text."""
        known = self.names.setdefault(file.root / file.path, {})
        if name in known:
            return known[name]
        statement = _find(file, name) or self._find_by_star(file, name)
        if statement is None or hops > 30:
            return name
        if isinstance(statement.node, (ast.Import, ast.ImportFrom)):
            known[name] = self._add_import(file, statement.node, name, hops)
            return known[name]
        self.statements.append(statement)
        for bound in statement.names():
            known[bound] = self._name_for(bound, f"{file.root / file.path}:{bound}")
        for used in sorted(_read(statement.node)):
            self.add(file, used, hops + 1)
        return known[name]

    def _name_for(self, name: str, meant: str) -> str:
        """The name, or a similar one if the text uses the name for another definition."""
        found, number = name, 2
        while self.taken.setdefault(found, meant) != meant:
            found, number = f"{name}_{number}", number + 1
        return found

    def _find_by_star(self, file: SourceFile, name: str) -> _Statement | None:
        """The star import that brings `name`: the last of the repository that binds it."""
        if hasattr(builtins, name):
            return None
        for node in reversed(file.tree.body):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                target = self._file_of(file, node.module or "", node.level)
                if target is not None and self._defines(target, name):
                    return _Statement(file, node)
        return None

    def _defines(self, file: SourceFile, name: str) -> bool:
        return (_find(file, name) or self._find_by_star(file, name)) is not None

    def _add_import(
        self, file: SourceFile, node: ast.Import | ast.ImportFrom, name: str, hops: int
    ) -> str:
        alias = next((one for one in node.names if _alias_name(node, one) == name), node.names[0])
        module = getattr(node, "module", None) or ""
        level = getattr(node, "level", 0)
        if isinstance(node, ast.Import):
            if self._file_of(file, alias.name, 0):
                raise Refused(f"{alias.name} is used as a whole")
            meant = alias.name if alias.asname else name
            return self._keep(name, meant, f"import {alias.name}", alias.asname is not None)
        target = self._file_of(file, module, level)
        if target is None and self._file_of(file, f"{module}.{alias.name}".strip("."), level):
            raise Refused(f"{alias.name} is used as a whole")
        if target is not None:
            wanted = alias.name if alias.name != "*" else name
            if not self._defines(target, wanted):
                raise Refused(f"{target.path} does not define {wanted}")
            return self.add(target, wanted, hops + 1)
        if level:
            raise Refused(f"no file for the import of {name} from {'.' * level}{module}")
        line = f"from {module} import {alias.name}"
        return self._keep(name, f"{module}.{alias.name}", line, name != alias.name)

    def _keep(self, name: str, meant: str, line: str, has_alias: bool) -> str:
        found = self._name_for(name, meant)
        package = meant.split(".")[0]
        if package not in PACKAGES:
            self.missing[found] = package
        else:
            self.lines.add(f"{line} as {found}" if has_alias or found != name else line)
        return found

    def _file_of(self, file: SourceFile, module: str, level: int) -> SourceFile | None:
        """The repository's file of a module; a package may begin at any folder above the file."""
        parts = [part for part in module.split(".") if part]
        if level:
            base = file.path.parent
            for _ in range(level - 1):
                base = base.parent
            return _at(self._folder_of(file), base, parts)
        if not parts or parts[0] in PACKAGES:
            return None
        for base in [file.path.parent, *file.path.parent.parents]:
            if found := _at(self._folder_of(file), base, parts):
                return found
        for folder in self.folders:
            for base in (Path(), Path("src")):
                if found := _at(folder, base, parts):
                    return found
        return None

    def _folder_of(self, file: SourceFile) -> Folder:
        return next(one for one in self.folders if one.root == file.root)

    def text(self) -> str:
        """The imports, then the definitions, each behind those that it needs when it is
        executed.
        """
        ordered: list[_Statement] = []
        for statement in self.statements:
            self._emit(statement, ordered, set())
        head = "\n".join(sorted(self.lines, key=lambda line: (line.startswith("from"), line)))
        blocks = [_renamed(one, self._names_of(one)) for one in ordered]
        text = head + "\n\n\n" + "\n\n\n".join(blocks) + "\n"
        if text.count("\n") > LINES_MAX:
            raise Refused(f"needs more than {LINES_MAX} lines of its repository")
        return text

    def _names_of(self, statement: _Statement) -> dict[str, str]:
        return self.names[statement.file.root / statement.file.path]

    def _emit(self, statement: _Statement, ordered: list[_Statement], under: set[int]) -> None:
        if statement in ordered or id(statement) in under:
            return
        names = self._names_of(statement)
        needed = {names.get(name, name) for name in _read_when_defined(statement.node)}
        for name in sorted(needed & set(self.missing)):
            raise Refused(f"needs the package {self.missing[name]}")
        if under and isinstance(statement.node, ast.FunctionDef):
            # The next definition may call it, for example as a decorator.
            needed |= {names.get(name, name) for name in _read(statement.node)}
        for other in self.statements:
            own = self._names_of(other)
            if other is not statement and {own[name] for name in other.names()} & needed:
                self._emit(other, ordered, under | {id(statement)})
        ordered.append(statement)


@dataclass(frozen=True)
class Text:
    """A self-contained text."""

    text: str
    owners: dict[str, SourceFile]  # The files of the names that it defines as they do.
    missing: dict[str, str]  # Names of missing packages that it mentions.

    def defined(self) -> str:
        """The text for arguments that do not reach missing packages; each missing name is set to
        None.
        """
        head, _, rest = self.text.partition("\n\n\n")
        mentioned = [name for name in self.missing if re.search(rf"\b{name}\b", rest)]
        lines = [
            f"{name} = None  # {self.missing[name]} defines it; the arguments below do not need it."
            for name in sorted(mentioned)
        ]
        return "\n".join([head, *lines]) + "\n\n\n" + rest if lines else self.text

    def why_undefined(self, error: str) -> str | None:
        """The reason to refuse the text if an error shows that a package is needed."""
        found = re.search(r"NameError: name '(\w+)' is not defined", error)
        package = self.missing.get(found.group(1)) if found else None
        return f"not self-contained: needs the package {package}" if package else None


def self_contained(
    folders: Sequence[Folder],
    file: SourceFile,
    name: str,
    also: Iterable[tuple[SourceFile, str]] = (),
) -> Text:
    """The class `name` of `file` and the names in `also` with everything that they use. Raises
    Refused.
    """
    closure = _Closure(folders)
    try:
        for where, wanted in [(file, name), *also]:
            if closure.add(where, wanted) != wanted or wanted not in closure.taken:
                raise Refused(f"{where.path} does not define {wanted}")
            if wanted in closure.missing:
                raise Refused(f"needs the package {closure.missing[wanted]}")
        text = closure.text()
    except RecursionError:
        raise Refused("definitions that need each other too deeply") from None
    owners = {
        bound: one.file
        for one in closure.statements
        for bound in one.names()
        if closure.names[one.file.root / one.file.path][bound] == bound
    }
    return Text(text, owners, closure.missing)


def _at(folder: Folder, base: Path, parts: list[str]) -> SourceFile | None:
    path = base.joinpath(*parts)
    found = folder.files.get(path.with_suffix(".py")) if parts else None
    return found or folder.files.get(path / "__init__.py")


def _renamed(statement: _Statement, names: dict[str, str]) -> str:
    """The statement with its comments, under the names of the text."""
    node = statement.node
    lines = [line.encode() for line in statement.file.text.splitlines()]
    changed = {old: new for old, new in names.items() if old != new}
    places = [(one.lineno, one.col_offset, one.id) for one in _global_names(node, set(changed))]
    if (own := getattr(node, "name", "")) in changed:
        at = re.search(rb"\b(?:def|class)\s+", lines[node.lineno - 1])
        assert at is not None
        places.append((node.lineno, at.end(), own))
    for row, column, old in sorted(places, reverse=True):
        line, end = lines[row - 1], column + len(old.encode())
        lines[row - 1] = line[:column] + changed[old].encode() + line[end:]
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
    return b"\n".join(lines[first - 1 : node.end_lineno or first]).decode()


def _global_names(node: ast.AST, wanted: set[str]) -> Iterator[ast.Name]:
    """The positions where a statement reads or binds these names of its file, without a function's
    locals.
    """
    if not wanted:
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        inner = [one for one in ast.walk(node) if one is not node]
        bound = {one.arg for one in inner if isinstance(one, ast.arg)}
        bound |= {one.id for one in inner
                  if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}  # fmt: skip
        body = node.body if isinstance(node.body, list) else [node.body]
        for one in ast.iter_child_nodes(node):
            yield from _global_names(one, wanted - bound if one in body else wanted)
        return
    if isinstance(node, ast.Name) and node.id in wanted:
        yield node
    for one in ast.iter_child_nodes(node):
        yield from _global_names(one, wanted)


def _find(file: SourceFile, name: str) -> _Statement | None:
    """The last statement of the file's top level that binds `name`."""
    for node in reversed(file.tree.body):
        if name in _bound(node):
            return _Statement(file, node)
    return None


def _alias_name(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if alias.asname:
        return alias.asname
    return alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield _alias_name(node, alias)
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for one in ast.walk(target):
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    yield one.id
    elif isinstance(node, (ast.If, ast.Try)):
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return
        for inner in ast.walk(node):
            if isinstance(inner, ast.stmt) and inner is not node:
                if not isinstance(inner, (ast.If, ast.Try)):
                    yield from _bound(inner)


def _read(node: ast.AST) -> set[str]:
    """All names that a statement reads, including those in quoted annotations."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    for one in ast.walk(node):
        annotation = getattr(one, "annotation", None) or getattr(one, "returns", None)
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            found |= set(_words(annotation.value))
    return found


def _words(text: str) -> Iterator[str]:
    try:
        yield from (one.id for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Name))
    except SyntaxError:
        return


def _read_when_defined(node: ast.stmt) -> set[str]:
    """The names that a statement reads when it is executed, not when its functions are called."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = node.args
        parts: list[ast.AST] = [*node.decorator_list, *arguments.defaults]
        parts += [one for one in arguments.kw_defaults if one is not None]
        parts += [one.annotation for one in ast.walk(arguments)
                  if isinstance(one, ast.arg) and one.annotation is not None]  # fmt: skip
        parts += [node.returns] if node.returns is not None else []
        return set().union(*map(_read, parts)) if parts else set()
    if isinstance(node, ast.ClassDef):
        heads: list[ast.AST] = [*node.bases, *node.keywords, *node.decorator_list]
        found = set().union(*map(_read, heads)) if heads else set()
        for one in node.body:
            found |= _read_when_defined(one)
        return found
    return _read(node)
