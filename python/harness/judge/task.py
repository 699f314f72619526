# SPDX-License-Identifier: Apache-2.0
"""A task's program, and its sizes as constants that can be bound to other values.

A *site* is the position of a size in the text: an integer assigned to a name at module level (also
inside a tuple or list, and as an expression of literals such as `1024 * 8`), or a literal of at
least 16 inside `get_inputs` or `get_init_inputs`. Values that the program derives from its
constants change with them.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import operator
import symtable
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from harness.candidate import cuda_on_cpu
from harness.judge import task_code
from harness.worker import settings
from harness.worker.program import name_model, run_module
from harness.worker.wire import TASK_FILE

LITERAL_MIN = 16
MAKERS = ("get_inputs", "get_init_inputs")
_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
}


@dataclass(frozen=True)
class Site:
    """One size: its label in reports, its value, and where it is used."""

    name: str  # "batch_size", "input_shape[1]", "get_inputs:12:30".
    value: int
    used_by: frozenset[str]  # Names of MAKERS; "Model" for any other use.


class Task:
    """The parsed program. `run` executes it with some sites bound to other values."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tree = task_code.run("load", ast.parse, source, TASK_FILE)
        self._nodes = dict(_find_sites(self._tree))
        # Each device's default device, as the task's code left it.
        self._default_devices: dict[torch.device, torch.device | None] = {}
        uses = _uses(source, self._tree)
        self.needs_general = any(map(_asks_for_general, self._tree.body))
        self.sites = [
            Site(name, _integer(node), _used_by(name, uses)) for name, node in self._nodes.items()
        ]

    @contextlib.contextmanager
    def running(self, device: torch.device) -> Iterator[None]:
        """All of the task's own code runs in this context: the task may use cuda even if `device`
        is not a CUDA device. A default device that the task sets applies only here, because PyTorch
        refuses to set one inside another's context.
        """
        before = _default_device()
        try:
            with cuda_on_cpu.standing_in_for(self._source, device):
                if (own := self._default_devices.get(device)) is not None:
                    torch.set_default_device(own)
                try:
                    yield
                finally:
                    self._default_devices[device] = _default_device()
        finally:
            if _default_device() != before:
                torch.set_default_device(before)

    def run(self, bound: Mapping[str, int]) -> ModuleType:
        """A fresh module in which the named sites have these values."""
        originals = {self._nodes[name]: value for name, value in bound.items()}
        memo: dict[int, Any] = {id(node): ast.copy_location(ast.Constant(value), node)
                                for node, value in originals.items()}  # fmt: skip
        tree = copy.deepcopy(self._tree, memo) if memo else self._tree
        settings.provide()
        return task_code.run("load", self._module_of, tree)

    def _module_of(self, tree: ast.Module) -> ModuleType:
        module = run_module(self._source, TASK_FILE, tree)
        for name in MAKERS:
            if not callable(getattr(module, name, None)):
                raise TypeError(f"the task does not define {name}")
        name_model(module)
        return module


def _default_device() -> torch.device | None:
    """The last argument of torch.set_default_device; torch.get_default_device would start CUDA."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def _asks_for_general(statement: ast.stmt) -> bool:
    """True for `require_general = True`: a candidate must be right at other sizes, too."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return names == ["require_general"] and statement.value.value is True


def _find_sites(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from _sites_of(target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from _sites_of(statement.target, statement.value)
        elif isinstance(statement, ast.FunctionDef) and statement.name in MAKERS:
            for node in ast.walk(statement):
                if isinstance(node, ast.Constant) and type(node.value) is int:
                    if node.value >= LITERAL_MIN:
                        yield f"{statement.name}:{node.lineno}:{node.col_offset + 1}", node


def _sites_of(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    sequence = isinstance(value, (ast.Tuple, ast.List))
    if isinstance(target, ast.Tuple) and isinstance(value, (ast.Tuple, ast.List)):
        for part, item in zip(target.elts, value.elts):
            yield from _sites_of(part, item)
    elif isinstance(target, ast.Name) and sequence:
        for number, item in enumerate(value.elts):  # type: ignore[attr-defined]
            if _is_integer(item):
                yield f"{target.id}[{number}]", item
    elif isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and _is_list(value.left):
        yield from _sites_of(target, value.left)  # [1024] * 16
    elif isinstance(target, ast.Name) and _is_integer(value):
        yield target.id, value


def _is_list(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.Tuple))


def _is_integer(node: ast.expr) -> bool:
    try:
        return _integer(node) > 0
    except (ValueError, ZeroDivisionError):
        return False


def _integer(node: ast.expr) -> int:
    """The value of an expression of integer literals. Raises ValueError for any other."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_integer(node.left), _integer(node.right))
    raise ValueError("not an integer expression")


def _uses(source: str, tree: ast.Module) -> dict[str, set[str]]:
    """The makers (or "Model") that read each constant, also through derived constants."""
    uses: dict[str, set[str]] = {}
    # The parser accepts some errors that the compiler refuses, such as a `return` outside a
    # function.
    tables = task_code.run("load", symtable.symtable, source, TASK_FILE, "exec")
    for table in tables.get_children():
        place = table.get_name() if table.get_name() in MAKERS else "Model"
        for name in _globals_read(table):
            uses.setdefault(name, set()).add(place)
    for statement in reversed(tree.body):
        if isinstance(statement, ast.Assign):
            names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
            targets = [node.id for node in names if isinstance(node.ctx, ast.Store)]
            for node in names:
                for target in targets if isinstance(node.ctx, ast.Load) else []:
                    uses.setdefault(node.id, set()).update(uses.get(target, set()))
    return uses


def _globals_read(table: symtable.SymbolTable) -> set[str]:
    """The global names that a scope and the scopes inside it read."""
    found = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    for child in table.get_children():
        found |= _globals_read(child)
    return found


def _used_by(name: str, uses: Mapping[str, set[str]]) -> frozenset[str]:
    if ":" in name:
        return frozenset({name.split(":")[0]})
    return frozenset(uses.get(name.split("[")[0], set()))
