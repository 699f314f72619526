# SPDX-License-Identifier: Apache-2.0
"""Proposes constructor arguments and inputs for a class, from source text only.

`proposals` are pairs of constructor arguments and inputs as expressions of Python, the likeliest
first: examples in the repository (a `__main__` block, a test, a page, a function that builds the
class), then the signature (signature.py). Nothing is run here; the sandbox tries the proposals
(attempt.py).
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.importer.signature import (
    OF_ALL,
    Proposal,
    Signature,
    configs_of,
    is_store,
    number,
)
from harness.importer.sources import SourceFile

EXAMPLES_MAX = 8


@dataclass
class _Body:
    """Statements of one scope; `values` are the defaults of a function's parameters."""

    file: SourceFile | None
    statements: list[ast.stmt]
    values: dict[str, ast.expr]
    function: str = ""
    rank: int = 0  # Zero for scripts, tests and pages; one for functions; two for methods.


class Examples:
    """The places where a repository's files and pages build and call its classes."""

    def __init__(self, files: Iterable[SourceFile], pages: Iterable[ast.Module] = ()) -> None:
        self._where: dict[str, list[_Body]] = {}
        self._defined: Counter[str] = Counter()  # Files with a class of that name.
        self._imported: dict[Path, set[str]] = {}  # The last words of the modules, by file.
        self.settings: dict[str, str] = {}  # Options of command lines, and their defaults.
        trees: list[tuple[SourceFile | None, ast.Module]] = [(one, one.tree) for one in files]
        for file, tree in [*trees, *((None, page) for page in pages)]:
            for body in _bodies(file, tree):
                for name in {_called(one) for one in _calls(body.statements)}:
                    self._where.setdefault(name, []).append(body)
            if file is not None:
                imports = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
                self._imported[file.path] = {(one.module or "").split(".")[-1] for one in imports}
            self._note_settings(tree)
            self._defined.update(_names_of(tree, (ast.ClassDef,)))

    def _note_settings(self, tree: ast.Module) -> None:
        for call in [one for one in ast.walk(tree) if isinstance(one, ast.Call)]:
            if _called(call) != "add_argument" or not call.args:
                continue
            name = ast.unparse(call.args[-1]).strip("'\"").lstrip("-").replace("-", "_")
            given = {str(one.arg): one.value for one in call.keywords}
            default = given.get("default")
            if isinstance(default, ast.Constant) and default.value is not None:
                self.settings.setdefault(name, "0.0" if "drop" in name else ast.unparse(default))

    def of(self, name: str, own: SourceFile | None) -> Iterator[Proposal]:
        """The constructor calls of a class, and the calls of its instances: its own file's first,
        and scripts before functions and methods.
        """
        found: dict[str, tuple[int, Proposal]] = {}
        bodies = [one for one in self._where.get(name, []) if self._is_same(name, own, one.file)]
        built: dict[str, list[Proposal]] = {}
        for body in bodies:
            for proposal in self._shown(body, name, {}):
                built.setdefault(body.function, []).append(proposal)
        made = {key: some for key, some in built.items() if key}
        callers = [one for key in made for one in self._where.get(key, []) if not one.rank]
        for body in [*bodies, *callers]:
            for proposal in self._shown(body, name, made):
                far = 2 * body.rank + (body.file is not own) - 3 * (proposal.inputs is not None)
                key = repr((proposal.init, proposal.named, proposal.inputs))
                found.setdefault(key, (far, proposal))
        for _, proposal in sorted(found.values(), key=lambda one: one[0]):
            yield proposal

    def _is_same(self, name: str, own: SourceFile | None, other: SourceFile | None) -> bool:
        """True if the name in `other` means the class of that name in `own`."""
        if self._defined[name] < 2 or own is None or other is None or other is own:
            return True
        home = own.path.parent.name if own.path.stem == "__init__" else own.path.stem
        is_own = name in _names_of(other.tree, (ast.ClassDef,))
        return home in self._imported[other.path] and not is_own

    def _shown(
        self, body: _Body, name: str, made: Mapping[str, list[Proposal]]
    ) -> Iterator[Proposal]:
        values = dict(body.values)
        instances: dict[str, list[Proposal]] = {}
        for statement in body.statements:
            for call in _calls([statement]):
                target = ast.unparse(call.func)
                if target in instances and call.args:
                    inputs = tuple(self._resolved(one, values, body.file) for one in call.args)
                    for one in instances.pop(target):
                        yield Proposal(one.init, one.named, inputs, one.file)
            built = [
                one
                for call in _calls([statement])
                for one in self._built(call, name, values, body.file, made)
            ]
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                if ast.unparse(statement.value) not in ("[]", "{}", "None"):  # It is filled later.
                    values[statement.targets[0].id] = statement.value
                if built:
                    instances[statement.targets[0].id] = built[:3]
                    continue
            yield from built
        yield from (one for some in instances.values() for one in some)

    def _built(
        self,
        call: ast.Call,
        name: str,
        values: dict[str, ast.expr],
        file: SourceFile | None,
        made: Mapping[str, list[Proposal]],
    ) -> list[Proposal]:
        if _called(call) in made:
            return made[_called(call)]
        if _called(call) != name or any(isinstance(one, ast.Starred) for one in call.args):
            return []
        named = {
            one.arg: self._resolved(one.value, values, file) for one in call.keywords if one.arg
        }
        named.update({key: "0.0" for key in named if "drop" in key})
        init = tuple(self._resolved(one, values, file) for one in call.args)
        return [Proposal(init, named, None, file)]

    def _resolved(
        self, node: ast.expr, values: dict[str, ast.expr], file: SourceFile | None
    ) -> str:
        """The expression with the block's own names replaced by their values; "" if the block does
        not show the value of a name.
        """
        known = _Values(values, file, self.settings)
        unknown = known.name_of_unknown(node)
        return self.settings.get(unknown, "") if unknown else ast.unparse(known.resolved(node))


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).split(".")[-1] if not isinstance(call.func, ast.Call) else ""


def _calls(statements: Iterable[ast.stmt]) -> list[ast.Call]:
    """The calls in statements, in text order, without those in inner definitions."""
    found: list[ast.Call] = []
    waiting: list[ast.AST] = list(statements)
    waiting.reverse()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            waiting += list(ast.iter_child_nodes(node))[::-1]
    return found


def _bodies(file: SourceFile | None, tree: ast.Module) -> Iterator[_Body]:
    """The statements of the module, of its `__main__` block, and of its functions."""
    yield _Body(file, [node for node in tree.body if not isinstance(node, ast.If)], {})
    for one in tree.body:
        if isinstance(one, ast.If) and "__name__" in ast.unparse(one.test):
            yield _Body(file, [*(other for other in tree.body if other is not one), *one.body], {})
    for top in tree.body:
        for node in ast.walk(top):
            if isinstance(node, ast.FunctionDef):
                is_test = node.name.startswith(("test", "main"))
                rank = 2 if isinstance(top, ast.ClassDef) else 0 if is_test else 1
                arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
                pairs = zip((each.arg for each in arguments), node.args.defaults)
                values = {key: one for key, one in pairs if ast.unparse(one) != "None"}
                values |= _first_rounds(node)
                yield _Body(file, _flat(node.body), values, node.name, rank)


def _first_rounds(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The values of loop variables in the first iteration."""
    found: dict[str, ast.expr] = {}
    for one in ast.walk(function):
        if not isinstance(one, (ast.For, ast.comprehension)) or not isinstance(one.iter, ast.Call):
            continue
        counter: ast.expr = one.target
        if _called(one.iter) == "enumerate" and isinstance(counter, ast.Tuple):
            counter = counter.elts[0]
        if _called(one.iter) in ("range", "enumerate") and isinstance(counter, ast.Name):
            found[counter.id] = ast.Constant(0)
    return found


def _flat(statements: Iterable[ast.stmt]) -> list[ast.stmt]:
    """Statements and those in their branches and loops, in the order of the text."""
    found: list[ast.stmt] = []
    for one in statements:
        inner = [*getattr(one, "body", []), *getattr(one, "orelse", [])]
        is_block = isinstance(one, (ast.If, ast.For, ast.With, ast.Try, ast.While))
        found += _flat(inner) if is_block else [one]
    return found


class _Values(ast.NodeTransformer):
    def __init__(
        self, values: dict[str, ast.expr], file: SourceFile | None, settings: Mapping[str, str]
    ) -> None:
        self._values, self._settings = values, settings
        self._known = OF_ALL | (_names_of(file.tree) if file is not None else set())
        self._bound: set[str] = set()
        self._depth = 0

    def resolved(self, node: ast.expr) -> ast.expr:
        """A copy of the expression; names that it binds itself are kept."""
        copied = ast.parse(ast.unparse(node), mode="eval").body
        self._bound |= {
            one.arg if isinstance(one, ast.arg) else one.id
            for one in ast.walk(copied)
            if isinstance(one, ast.arg) or isinstance(one, ast.Name) and is_store(one)
        }
        return self.visit(copied)  # type: ignore[no-any-return]

    def name_of_unknown(self, node: ast.expr) -> str:
        """The name of a variable or attribute whose value the block does not show, otherwise ""."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return ""
        if root.id in self._known | self._bound or root.id in self._values:
            return ""
        return node.attr if isinstance(node, ast.Attribute) else root.id

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._values and node.id not in self._bound and self._depth <= 4:
            self._depth += 1
            value = self.resolved(self._values[node.id])
            self._depth -= 1
            return value
        unknown = self.name_of_unknown(node)
        return self._guess(unknown) if unknown else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        unknown = self.name_of_unknown(node)
        return self._guess(unknown) if unknown else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replaces a call on an unknown object, such as `options.get("width", 64)`, by its last
        argument.
        """
        if not self.name_of_unknown(node.func):
            return self.generic_visit(node)
        return self.resolved(node.args[-1]) if len(node.args) > 1 else self._guess("")

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Replaces an item of an unknown object by a usual value for its name."""
        unknown = self.name_of_unknown(node.value)
        return self._guess(unknown) if unknown else self.generic_visit(node)

    def _guess(self, name: str) -> ast.expr:
        return ast.parse(self._settings.get(name) or number(name) or "64", mode="eval").body


def _names_of(tree: ast.Module, kinds: tuple[type, ...] = (ast.stmt,)) -> set[str]:
    """The names that the top level of a file binds, by statements of these kinds."""
    found = set()
    for one in [one for one in tree.body if isinstance(one, kinds)]:
        if isinstance(one, (ast.ClassDef, ast.FunctionDef)):
            found.add(one.name)
        elif isinstance(one, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in one.names}
        elif isinstance(one, ast.Assign):
            found |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    return found


def proposals(
    name: str, tree: ast.Module, file: SourceFile | None, examples: Examples
) -> Iterator[Proposal]:
    """The proposals for the class `name` of a self-contained text, the likeliest first."""
    signature = Signature(tree, name, configs_of(tree, *([file.tree] if file is not None else [])))
    usual = signature.usual()
    places = list(usual.values())
    for one in itertools.islice(examples.of(name, file), EXAMPLES_MAX):
        init = [text or "".join(places[at : at + 1]) or "64" for at, text in enumerate(one.init)]
        named = {key: text or usual.get(key, "64") for key, text in one.named.items()}
        yield replace(one, init=tuple(init), named=named)
    for one in signature.proposals():
        yield replace(one, file=file)
