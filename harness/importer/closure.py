# SPDX-License-Identifier: Apache-2.0
"""A class as a text that needs no other file: the definitions that it uses are copied along.

A name that a definition reads is looked up among the statements of its own file; an import from the
same repository, or from another one of those that are imported, is followed to the statement there,
and any other import is kept. What the text would need beyond Python, PyTorch, NumPy and einops is a
reason to refuse it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.importer.sources import Folder, Refused, SourceFile

LINES_MAX = 800  # A module that needs more than this is a whole library.
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
    folders: Sequence[Folder]  # Those whose files may be followed; the class's own is the first.
    imports: dict[str, str] = field(default_factory=dict)  # Meanings of names: "torch.nn".
    lines: set[str] = field(default_factory=set)  # The statements of these imports.
    statements: list[_Statement] = field(default_factory=list)
    owners: dict[str, Path] = field(default_factory=dict)  # The file, by the name it binds.
    renames: dict[str, str] = field(default_factory=dict)  # New name: the name it stands for.

    def add(self, file: SourceFile, name: str, hops: int = 0) -> None:
        """Adds all that `name` needs, where `file` binds it."""
        statement = _find(file, name) or self._find_by_star(file, name)
        if statement is None or hops > 30:
            return
        if isinstance(statement.node, (ast.Import, ast.ImportFrom)):
            self._add_import(file, statement.node, name, hops)
            return
        owner = self.owners.setdefault(name, file.root / file.path)
        if owner != file.root / file.path:
            raise Refused(f"two definitions of {name}, in {owner.name} and {file.path}")
        if any(one.node is statement.node for one in self.statements):
            return
        self.statements.append(statement)
        for bound in statement.names():
            self.owners.setdefault(bound, file.root / file.path)
        for used in sorted(_read(statement.node)):
            self.add(file, used, hops + 1)

    def _find_by_star(self, file: SourceFile, name: str) -> _Statement | None:
        """The star import that brings `name`: the last of the repository that binds it."""
        if _is_builtin(name):
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
    ) -> None:
        alias = next((one for one in node.names if _alias_name(node, one) == name), node.names[0])
        module = getattr(node, "module", None) or ""
        level = getattr(node, "level", 0)
        if isinstance(node, ast.Import):
            if self._is_inside(file, alias.name, 0):
                raise Refused(f"{alias.name} is used as a whole")
            meant = alias.name if alias.asname else name
            self._keep(name, meant, f"import {ast.unparse(alias)}")
            return
        target = self._file_of(file, module, level)
        if target is None and self._file_of(file, f"{module}.{alias.name}".strip("."), level):
            raise Refused(f"{alias.name} is used as a whole")
        if target is not None:
            self._follow(target, alias.name if alias.name != "*" else name, name, hops)
        elif level:
            raise Refused(f"no file for the import of {name} from {'.' * level}{module}")
        else:
            self._keep(name, f"{module}.{alias.name}", f"from {module} import {ast.unparse(alias)}")

    def _follow(self, target: SourceFile, wanted: str, name: str, hops: int) -> None:
        if not self._defines(target, wanted):
            raise Refused(f"{target.path} does not define {wanted}")
        self.add(target, wanted, hops + 1)
        if wanted != name and self.renames.setdefault(name, wanted) != wanted:
            raise Refused(f"two definitions of {name}")

    def _keep(self, name: str, meant: str, line: str) -> None:
        package = meant.split(".")[0]
        if package not in PACKAGES:
            raise Refused(f"needs the package {package}")
        if self.imports.setdefault(name, meant) != meant:
            raise Refused(f"two imports of {name}")
        self.lines.add(line)

    def _is_inside(self, file: SourceFile, module: str, level: int) -> bool:
        return self._file_of(file, module, level) is not None

    def _file_of(self, file: SourceFile, module: str, level: int) -> SourceFile | None:
        """The repository's file of a module; packages may begin at any folder above the file."""
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
        """Imports, then the definitions, each behind those that it needs when it is defined."""
        ordered: list[_Statement] = []
        for statement in self.statements:
            self._emit(statement, ordered, set())
        lines = sorted(self.lines, key=lambda line: (line.startswith("from"), line))
        blocks = [_unparsed(one) for one in ordered]
        head = "\n".join(lines)
        aliases = [f"{new} = {old}" for new, old in self.renames.items()]
        body = _with_aliases(blocks, [one.names() for one in ordered], self.renames, aliases)
        text = head + "\n\n\n" + "\n\n\n".join(body) + "\n"
        if text.count("\n") > LINES_MAX:
            raise Refused(f"needs more than {LINES_MAX} lines of its repository")
        return text

    def _emit(self, statement: _Statement, ordered: list[_Statement], under: set[int]) -> None:
        if statement in ordered or id(statement) in under:
            return
        needed = {self.renames.get(name, name) for name in _read_when_defined(statement.node)}
        for other in self.statements:
            if other is not statement and other.names() & needed:
                self._emit(other, ordered, under | {id(statement)})
        ordered.append(statement)


def self_contained(folders: Sequence[Folder], file: SourceFile, name: str) -> str:
    """The text of the class `name` of `file` with all that it uses. Raises Refused."""
    closure = _Closure(folders)
    try:
        closure.add(file, name)
        return closure.text()
    except RecursionError:
        raise Refused("definitions that need each other too deeply") from None


def _at(folder: Folder, base: Path, parts: list[str]) -> SourceFile | None:
    path = base.joinpath(*parts)
    found = folder.files.get(path.with_suffix(".py")) if parts else None
    return found or folder.files.get(path / "__init__.py")


def _with_aliases(
    blocks: list[str], bound: list[set[str]], renames: dict[str, str], aliases: list[str]
) -> list[str]:
    """Puts each `new = old` behind the block that defines `old`, or first where none does."""
    out: list[str] = []
    left = dict(zip(renames, aliases))
    for block, names in zip(blocks, bound):
        out.append(block)
        for new in [new for new in left if renames[new] in names]:
            out.append(left.pop(new))
    return [*left.values(), *out]


def _unparsed(statement: _Statement) -> str:
    """The statement as its author wrote it, comments included."""
    lines = statement.file.text.splitlines()
    decorators = getattr(statement.node, "decorator_list", [])
    first = min([statement.node.lineno, *(one.lineno for one in decorators)])
    end = statement.node.end_lineno or first
    return "\n".join(lines[first - 1 : end])


def _find(file: SourceFile, name: str) -> _Statement | None:
    """The last statement of the file's top level that binds `name`."""
    for node in reversed(file.tree.body):
        if name in _bound(node):
            return _Statement(file, node)
    return None


def _is_builtin(name: str) -> bool:
    return name in dir(__builtins__) or name in ("__file__", "__name__", "super", "print")


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
    """All names that a statement reads, those of its annotations in quotes included."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    for one in ast.walk(node):
        annotation = getattr(one, "annotation", None) or getattr(one, "returns", None)
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            found |= {word for word in _words(annotation.value)}
    return found


def _words(text: str) -> Iterator[str]:
    try:
        yield from (one.id for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Name))
    except SyntaxError:
        return


def _read_when_defined(node: ast.stmt) -> set[str]:
    """The names that a statement reads as it is executed, not when its functions are called."""
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
