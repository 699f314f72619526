# SPDX-License-Identifier: Apache-2.0
"""The inspector: parses a program with CPython's own parser, and never runs it.

It names the classes and functions that the program defines at module level (also under `if`, `try`
or `with`; methods of these classes as "Class.method", inherited ones too), and applies the policy's
"python" rules to names that the program uses, not to those that it only imports. Names are resolved
through imports and simple aliases, `getattr` with constant text counts as an attribute. These rules
only save time: the run itself finds what they miss.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from harness.worker.wire import Answer, Json, Question

SOURCE_BYTES_MAX = 1 << 20
FINDINGS_MAX = 32

# Layers that compute nothing, or nothing in every mode.
_HARMLESS_LAYERS = {"torch.nn.Identity", "torch.nn.Dropout", "torch.nn.Module"}

# Functions that compile native source.
_COMPILING = {f"torch.utils.cpp_extension.{name}" for name in ("load", "load_inline")}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def answer(question: Question) -> Answer:
    return Answer(inspect_source(question.body["source"], question.body["rules"]))


def inspect_source(source: str, rules: Json) -> Json:
    """The inspector's response for one program."""
    nothing: Json = {
        "classes": [],
        "functions": [],
        "findings": [],
        "unsupported": [],
        "languages": [],
        "native": False,
    }
    judged = rules.get("judged_languages", [])
    rules = {name: [one for one in texts if one not in judged] for name, texts in rules.items()}
    if len(source) > SOURCE_BYTES_MAX:
        return nothing | {"syntax_error": _syntax_error("the program is too long")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            program = Program.of(tree)
            checker = _Rules(rules, program, source.splitlines())
            findings, unsupported = checker.findings(), [*checker.unsupported()]
            languages = [language for language in judged if checker.is_written_in(language)]
            native = checker.compiles_native_source()
    except SyntaxError as error:
        text = (error.text or "").rstrip()[:200]
        message = error.msg or "invalid syntax"
        return nothing | {
            "syntax_error": _syntax_error(message, error.lineno or 0, error.offset or 0, text)
        }
    except (RecursionError, MemoryError):
        return nothing | {"syntax_error": _syntax_error("the program is nested too deeply")}
    except ValueError as error:
        return nothing | {"syntax_error": _syntax_error(str(error))}
    functions = [*program.functions]
    for name in program.classes:
        functions += [f"{name}.{method}" for method in program.methods_of(name)]
    return nothing | {
        "classes": [*program.classes],
        "functions": functions,
        "findings": findings,
        "unsupported": unsupported,
        "languages": languages,
        "native": native,
    }


def _syntax_error(message: str, line: int = 0, column: int = 0, text: str = "") -> Json:
    return {"message": message, "line": line, "column": column, "text": text}


# ---- Names --------------------------------------------------------------------------------------


@dataclass
class Program:
    """A module's definitions, and the meanings of its names."""

    tree: ast.Module
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    assigned: dict[str, ast.AST] = field(default_factory=dict)  # Module-level names -> statement.
    aliases: dict[str, str] = field(default_factory=dict)  # Local name -> dotted name.

    @staticmethod
    def of(tree: ast.Module) -> Program:
        program = Program(tree)
        for statement in _module_level(tree.body):
            if isinstance(statement, ast.ClassDef):
                program.classes[statement.name] = statement
            elif isinstance(statement, Function):
                program.functions[statement.name] = statement
            elif isinstance(statement, ast.Assign):
                program._note_assignment(statement)
        for node in ast.walk(tree):
            program._note_alias(node)
        return program

    def _note_assignment(self, statement: ast.Assign) -> None:
        """`ModelNew = Other` defines ModelNew if Other is a class of the module."""
        value = statement.value
        for target in statement.targets:
            if not isinstance(target, ast.Name):
                continue
            self.assigned[target.id] = statement
            if isinstance(value, ast.Name) and value.id in self.classes:
                self.classes[target.id] = self.classes[value.id]

    def _note_alias(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for name in node.names:
                target = name.name if name.asname else name.name.split(".")[0]
                self.aliases[name.asname or target] = target
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                self.aliases[name.asname or name.name] = f"{node.module or ''}.{name.name}"
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target_node, dotted = node.targets[0], self.dotted(node.value)
            if isinstance(target_node, ast.Name) and dotted and dotted != target_node.id:
                if dotted.split(".")[0] in self._imported():
                    self.aliases.setdefault(target_node.id, dotted)

    def _imported(self) -> set[str]:
        return {dotted.split(".")[0] for dotted in self.aliases.values()}

    def dotted(self, node: ast.AST) -> str:
        """The dotted name that an expression stands for, aliases resolved; "" for others."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        if isinstance(node, ast.Call) and self.dotted(node.func) == "getattr":
            if len(node.args) >= 2:
                owner, name = self.dotted(node.args[0]), constant_text(node.args[1])
                return f"{owner}.{name}" if owner and name else ""
        return ""

    def uses(self) -> Iterator[tuple[ast.expr, str]]:
        """The longest expressions that mean imported objects, with their dotted names."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            root = node
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and isinstance(node, (ast.Name, ast.Attribute)):
                if root.id in self.aliases:
                    yield node, self.dotted(node)
            else:
                waiting.extend(ast.iter_child_nodes(node))

    def within(self, name: str) -> list[ast.AST]:
        """The definition of the name, and all definitions that it names, transitively."""
        definitions = self.assigned | self.functions | self.classes
        found: dict[str, ast.AST] = {}
        waiting = [name]
        while waiting:
            name = waiting.pop()
            if name in found or name not in definitions:
                continue
            found[name] = definitions[name]
            waiting += [node.id for node in ast.walk(found[name]) if isinstance(node, ast.Name)]
        return [*found.values()]

    def methods_of(self, name: str, seen: frozenset[str] = frozenset()) -> dict[str, Function]:
        """Methods of a class, with those that it inherits from classes of this module."""
        found: dict[str, Function] = {}
        for base in self.classes[name].bases:
            if isinstance(base, ast.Name) and base.id in self.classes and base.id not in seen:
                found |= self.methods_of(base.id, seen | {name})
        for statement in _module_level(self.classes[name].body):
            if isinstance(statement, Function):
                found[statement.name] = statement
        return found

    def reachable(self, start: Function, methods: dict[str, Function]) -> list[Function]:
        """`start` and the functions of the module and methods of `self` that it may call."""
        found: list[Function] = []
        waiting = [start]
        while waiting:
            function = waiting.pop()
            if function in found:
                continue
            found.append(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and node.id in self.functions:
                    waiting.append(self.functions[node.id])
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    if node.value.id == "self" and node.attr in methods:
                        waiting.append(methods[node.attr])
        return found


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body, with those under if, try, with and loops."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _module_level(getattr(statement, name, []))
        for handler in getattr(statement, "handlers", []):
            yield from _module_level(handler.body)


def constant_text(node: ast.AST) -> str:
    """The value of a constant string expression (also "a" + "b" and plain f-strings), or ""."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = constant_text(node.left), constant_text(node.right)
        return left + right if left and right else ""
    if isinstance(node, ast.JoinedStr):
        parts = [constant_text(part) for part in node.values]
        return "".join(parts) if all(parts) else ""
    return ""


# ---- Rules --------------------------------------------------------------------------------------

_PYTHON_GRAPHS = frozenset(("CUDAGraph", "graph", "make_graphed_callables"))


@dataclass(frozen=True)
class _Rules:
    rules: Json
    program: Program
    lines: list[str]

    def findings(self) -> list[Json]:
        found = [*self._everywhere(), *self._in_forward()]
        unique = {(item["rule"], item["line"], item["column"]): item for item in found}
        ordered = sorted(unique.values(), key=lambda item: (item["line"], item["column"]))
        return ordered[:FINDINGS_MAX]

    def _everywhere(self) -> Iterator[Json]:
        imports, allowed = self._list("forbidden_imports"), self._list("allowed")
        for use, dotted in self.program.uses():
            if _matches(dotted, imports) and dotted not in allowed:
                yield self._finding("forbidden_import", f"use of {dotted}", use)
        names = set(self._list("forbidden_names")) - _names_bound_in(self.program.tree)
        for node in ast.walk(self.program.tree):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                if _matches(node.module or "", imports):
                    yield self._finding("forbidden_import", f"import of {node.module}", node)
            if isinstance(node, ast.Name) and node.id in names:
                yield self._finding("forbidden_name", f"use of {node.id}", node)

    def unsupported(self) -> Iterator[Json]:
        """ModelNew's kernels in unsupported languages, if it has no native kernels."""
        if self.compiles_native_source():
            return
        for language in self._list("unsupported_languages"):
            if place := self._first_kernel(language):
                message = (
                    f"{language} kernels are not judged: compile native source with "
                    "load_inline or load when the module is imported"
                )
                yield self._finding("unsupported_language", message, place)
                return

    def is_written_in(self, language: str) -> bool:
        """True if ModelNew has kernels in the language."""
        return self._first_kernel(language) is not None

    def compiles_native_source(self) -> bool:
        return any(dotted in _COMPILING for _, dotted in self.program.uses())

    def _first_kernel(self, language: str) -> ast.AST | None:
        for definition in self.program.within("ModelNew"):
            for node in ast.walk(definition):
                if place := self._maker_of(node, language):
                    return place
        return None

    def _maker_of(self, node: ast.AST, language: str) -> ast.AST | None:
        """True if an expression makes a kernel: a decorator from the language, or a call of exactly
        that name.
        """
        for decorator in node.decorator_list if isinstance(node, Function) else ():
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self._is_imported(called) and _matches(self.program.dotted(called), [language]):
                return decorator
        if isinstance(node, ast.Call) and self._is_imported(node.func):
            return node if self.program.dotted(node.func) == language else None
        return None

    def _is_imported(self, node: ast.AST) -> bool:
        """True if a dotted name begins with one that the module imports."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.program.aliases

    def _in_forward(self) -> Iterator[Json]:
        if "ModelNew" not in self.program.classes:
            return
        methods = self.program.methods_of("ModelNew")
        held = self._torch_modules(methods.get("__init__"))
        starts = [methods[name] for name in ("forward", "__call__") if name in methods]
        for start in starts:
            for function in self.program.reachable(start, methods):
                for statement in function.body:  # Decorators run when the module is imported.
                    for node in ast.walk(statement):
                        yield from self._in_function(node, held)

    def _torch_modules(self, init: Function | None) -> dict[str, str]:
        """Attributes that `__init__` binds to layers of torch: {"self.fc": "torch.nn.Linear"}."""
        layers = set(self._list("parameter_containers"))
        held = {}
        for node in ast.walk(init) if init is not None else ():
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                made = self.program.dotted(node.value.func)
                for target in node.targets if made in layers - _HARMLESS_LAYERS else []:
                    held[self.program.dotted(target)] = made
        return held

    def _in_function(self, node: ast.AST, held: dict[str, str]) -> Iterator[Json]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            if self._list("forbidden_calls"):
                yield self._finding("forbidden_call", "the operator @ is torch.matmul", node)
        if not isinstance(node, ast.Call):
            return
        dotted = self.program.dotted(node.func)
        if dotted in held:
            message = f"{dotted} is a {held[dotted]}, which may hold parameters, not compute"
            yield self._finding("module_call", message, node)
        if dotted in self._list("allowed") or self._is_operator(dotted) or _is_own(dotted):
            return
        if _matches(dotted, self._list("forbidden_calls")):
            message = f"call of {dotted} in forward"
            if dotted.rpartition(".")[2] in _PYTHON_GRAPHS:
                message += ": a graph is captured in native source, by cudaStreamBeginCapture"
            yield self._finding("forbidden_call", message, node)

    def _is_operator(self, dotted: str) -> bool:
        """True for torch.view or torch.Tensor.view if `view` is permitted."""
        owner, _, name = dotted.rpartition(".")
        return owner in ("torch", "torch.Tensor") and name in self._list("operators")

    def _list(self, name: str) -> list[str]:
        found: list[str] = self.rules.get(name, [])
        return found

    def _finding(self, rule: str, message: str, node: ast.AST) -> Json:
        line = getattr(node, "lineno", 0)
        text = self.lines[line - 1].strip()[:200] if 0 < line <= len(self.lines) else ""
        return {
            "rule": f"python.{rule}",
            "message": message,
            "line": line,
            "column": getattr(node, "col_offset", -1) + 1,
            "text": text,
        }


def _is_own(dotted: str) -> bool:
    """True for torch.ops.mine.swish, an operator of a namespace that PyTorch does not have."""
    parts = dotted.split(".")
    return parts[:2] == ["torch", "ops"] and len(parts) > 3 and parts[2] not in _namespaces()


@cache
def _namespaces() -> frozenset[str]:
    names = torch._C._dispatch_get_all_op_names()
    return frozenset(name.partition("::")[0] for name in names)


def _names_bound_in(tree: ast.Module) -> set[str]:
    """The names that the program itself binds: variables, parameters, functions and classes."""
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            bound.add(node.name)
    return bound


def _matches(name: str, patterns: list[str]) -> bool:
    """True if a dotted name is one of the patterns or lies below one ("torch.nn.functional.*")."""
    return any(
        name == pattern or name.startswith(pattern.removesuffix("*").rstrip(".") + ".")
        for pattern in patterns
        if name and pattern
    )
