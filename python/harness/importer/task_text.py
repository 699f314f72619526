# SPDX-License-Identifier: Apache-2.0
"""A found module, and the arguments with which it ran, as a task in KernelBench's form."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass

from harness.importer.sources import Refused

LITERAL_MIN = 16  # Smaller constructor arguments are rarely sizes of inputs.
_IMPORTS = (
    ("torch", "import torch"),
    ("nn", "import torch.nn as nn"),
    ("F", "import torch.nn.functional as F"),
    ("functools", "import functools"),
    ("SimpleNamespace", "from types import SimpleNamespace"),
)


@dataclass(frozen=True)
class Arguments:
    """Expressions of Python, as attempt.py found them."""

    init: list[str]
    named: dict[str, str]
    inputs: list[str]
    is_plain: bool = True  # The judge can pass the constructor's arguments on.

    @staticmethod
    def of(found: object) -> "Arguments":
        """Checks the sandbox's result. Raises Refused if it is malformed."""
        if isinstance(found, dict) and isinstance(found.get("error"), str):
            raise Refused(found["error"][:300])
        if isinstance(found, dict) and isinstance(found.get("died"), str):
            raise Refused(f"not run: {found['died']}")
        try:
            init, named, inputs = found["init"], found["named"], found["inputs"]  # type: ignore
            for one in [*init, *named.values(), *inputs]:
                ast.parse(one, mode="eval")
            if not all(map(str.isidentifier, named)):
                raise ValueError
            is_plain = found.get("is_plain", True) is True  # type: ignore
            return Arguments(list(init), dict(named), list(inputs), is_plain)
        except (TypeError, LookupError, ValueError, AttributeError, SyntaxError, RecursionError,
                MemoryError):  # fmt: skip
            raise Refused("not run: its process wrote something else than a result") from None

    def texts(self) -> list[str]:
        return [*self.init, *self.named.values(), *self.inputs]


def task_text(text: str, name: str, arguments: Arguments) -> str:
    """The text of the task; sizes become constants, so that the judge can try others.

    If the judge cannot pass some arguments on, such as modules and configurations, a wrapper class
    takes their sizes and makes them.
    """
    bound = {getattr(one, "name", "") for one in ast.parse(text).body}
    if "Model" in bound and (name != "Model" or not arguments.is_plain):
        base = next(one for one in ("Base", "BaseModel", "Model_") if one not in bound)
        text = _renamed(text, "Model", base)
        renamed = Arguments(
            [_renamed(one, "Model", base) for one in arguments.init],
            {key: _renamed(one, "Model", base) for key, one in arguments.named.items()},
            arguments.inputs,
            arguments.is_plain,
        )
        arguments, name = renamed, base if name == "Model" else name
    sizes = Sizes(text)
    batch = sizes.batch_of(arguments.inputs)
    inputs = ", ".join(sizes.input(one, batch) for one in arguments.inputs)
    change = sizes.initial if arguments.is_plain else sizes.all
    init = [change(one) for one in arguments.init]
    named = {key: change(one) for key, one in arguments.named.items()}
    given = ", ".join(f"{key!r}: {one}" for key, one in named.items())
    returned, model = f"[[{', '.join(init)}], {{{given}}}]", f"Model = {name}"
    if not arguments.is_plain:
        call = ", ".join([*init, *(f"{key}={one}" for key, one in named.items())])
        wanted = sizes.used_in(call)
        returned, model = f"[{', '.join(wanted)}]", _around(name, wanted, call)
    parts = [
        _missing_imports(text, arguments.texts()) + text.rstrip("\n"),
        "\n".join(sizes.lines()),
        f"def get_inputs():\n    return [{inputs}]",
        f"def get_init_inputs():\n    return {returned}",
    ]
    parts += [model] if name != "Model" else []
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _around(name: str, wanted: list[str], call: str) -> str:
    parameters = ", ".join(["self", *wanted])
    return (
        f"class Model({name}):\n"
        f"    def __init__({parameters}):\n"
        f"        super().__init__({call})"
    )


def _renamed(text: str, old: str, new: str) -> str:
    """The text with another name for one of its own; attributes of that name stay."""
    out, end, before = [], (1, 0), ""
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string == old and before != ".":
            out += [_between(lines, end, token.start), new]
            end = token.end
        before = token.string
    return "".join([*out, _between(lines, end, (len(lines) + 1, 0))])


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]]
    rest = lines[end[0] - 1][: end[1]] if end[0] <= len(lines) else ""
    first = lines[start[0] - 1][start[1] :] if lines else ""
    return first + "".join(lines[start[0] : end[0] - 1]) + rest


def _missing_imports(text: str, expressions: list[str]) -> str:
    """The imports that the arguments need and that the text lacks."""
    trees = [ast.parse(one, mode="eval") for one in expressions]
    used = {"torch", "nn"} | {one.id for tree in trees for one in ast.walk(tree)
                              if isinstance(one, ast.Name)}  # fmt: skip
    bound = set()
    for one in ast.parse(text).body:
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            bound |= {alias.asname or alias.name.split(".")[0] for alias in one.names}
    return "".join(f"{line}\n" for name, line in _IMPORTS if name in used - bound)


class Sizes:
    """Sizes as constants of the module, one for each value, and one for the batch."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._names: dict[str, int] = {}
        is_taken = re.search(r"^batch_size\b", source, re.MULTILINE) is not None
        self._batch = "num_rows" if is_taken else "batch_size"

    def batch_of(self, texts: list[str]) -> int:
        """The first extent, if all random inputs with more than one dimension share it."""
        shapes = [_shape_of(one) for text in texts for one in ast.walk(ast.parse(text))]
        firsts = [getattr(shape[0], "value", 0) for shape in shapes if len(shape) > 1]
        is_one = len(set(firsts)) == 1 and type(firsts[0]) is int and firsts[0] > 1
        return firsts[0] if is_one else 0

    def input(self, text: str, batch: int) -> str:
        tree = ast.parse(text, mode="eval").body
        for one in ast.walk(tree) if batch else ():
            if len(shape := _shape_of(one)) > 1:
                self._names[self._batch] = batch
                shape[0] = ast.Name(self._batch)
        return ast.unparse(Sized(self, 2).visit(tree))

    def initial(self, text: str) -> str:
        return ast.unparse(_Known(self).visit(ast.parse(text, mode="eval").body))

    def all(self, text: str) -> str:
        """The expression with a constant for each size."""
        return ast.unparse(Sized(self, LITERAL_MIN).visit(ast.parse(text, mode="eval").body))

    def used_in(self, text: str) -> list[str]:
        return [name for name in self._names if re.search(rf"\b{name}\b", text)]

    def name(self, value: int) -> str:
        name = f"size_{value}"
        while name in self._source:
            name += "_"
        self._names[name] = value
        return name

    def has_constant(self, value: int) -> bool:
        return value >= LITERAL_MIN and value in self._names.values()

    def lines(self) -> list[str]:
        return [f"{name} = {value}" for name, value in self._names.items()]


def _shape_of(tree: ast.AST) -> list[ast.expr]:
    """The extents in a call that makes a random tensor; [] for any other expression."""
    if not isinstance(tree, ast.Call) or not ast.unparse(tree.func).startswith("torch.ran"):
        return []
    for argument in tree.args:
        if isinstance(argument, (ast.Tuple, ast.List)):
            return argument.elts
    return tree.args if ast.unparse(tree.func) != "torch.randint" else []


class Sized(ast.NodeTransformer):
    def __init__(self, sizes: Sizes, least: int) -> None:
        self._sizes, self._least = sizes, least

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        is_size = type(node.value) is int and node.value >= self._least
        return ast.Name(self._sizes.name(node.value)) if is_size else node  # type: ignore


class _Known(Sized):
    """Replaces only sizes that the inputs have, too."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, LITERAL_MIN)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        is_known = type(node.value) is int and self._sizes.has_constant(node.value)
        return super().visit_Constant(node) if is_known else node
