# SPDX-License-Identifier: Apache-2.0
"""A found module, and the arguments with which it ran, as a task in KernelBench's form."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from harness.importer.sources import Refused

LITERAL_MIN = 16  # Smaller constructor arguments are rarely sizes of inputs.


@dataclass(frozen=True)
class Arguments:
    """Expressions of Python, as attempt.py found them."""

    init: list[str]
    named: dict[str, str]
    inputs: list[str]

    @staticmethod
    def of(found: object) -> "Arguments":
        """Checks what came out of the sandbox. Raises Refused where it is something else."""
        if isinstance(found, dict) and isinstance(found.get("error"), str):
            raise Refused(found["error"][:200])
        if isinstance(found, dict) and isinstance(found.get("died"), str):
            raise Refused(f"not run: {found['died']}")
        try:
            init, named, inputs = found["init"], found["named"], found["inputs"]  # type: ignore
            for one in [*init, *named.values(), *inputs]:
                ast.parse(one, mode="eval")
            return Arguments(list(init), dict(named), list(inputs))
        except (TypeError, KeyError, ValueError, AttributeError, SyntaxError):
            raise Refused("not run: its process wrote something else than a result") from None


def task_text(text: str, name: str, arguments: Arguments) -> str:
    """The text of the task; sizes become constants, so that the judge can try others."""
    tree = ast.parse(text)
    bound = {getattr(one, "name", "") for one in tree.body}
    if name != "Model" and "Model" in bound:
        raise Refused("another class of its text is called Model")
    sizes = _Sizes(text)
    inputs = ", ".join(sizes.input(one) for one in arguments.inputs)
    init = ", ".join(sizes.initial(one) for one in arguments.init)
    named = ", ".join(f"{key!r}: {sizes.initial(one)}" for key, one in arguments.named.items())
    parts = [
        _missing_imports(text) + text.rstrip("\n"),
        "\n".join(sizes.lines()),
        f"def get_inputs():\n    return [{inputs}]",
        f"def get_init_inputs():\n    return [[{init}], {{{named}}}]",
    ]
    parts += [f"Model = {name}"] if name != "Model" else []
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _missing_imports(text: str) -> str:
    lines = text.splitlines()
    wanted = ["import torch", "from torch import nn", "import torch.nn as nn"]
    found = [line for line in wanted if line in lines]
    missing = [] if "import torch" in found else ["import torch"]
    missing += [] if len(set(found) - {"import torch"}) else ["import torch.nn as nn"]
    return "".join(f"{line}\n" for line in missing)


class _Sizes:
    """Sizes as constants of the module, one for each value, and one for the batch."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._names: dict[str, int] = {}

    def input(self, text: str) -> str:
        tree = ast.parse(text, mode="eval").body
        shape = _shape_of(tree)
        batch = getattr(shape[0], "value", None) if len(shape) > 1 else None
        if type(batch) is int and batch > 1:
            self._names["batch_size"] = max(batch, self._names.get("batch_size", 0))
            shape[0] = ast.Name("batch_size")
        return ast.unparse(_Sized(self, 2).visit(tree))

    def initial(self, text: str) -> str:
        return ast.unparse(_Known(self).visit(ast.parse(text, mode="eval").body))

    def name(self, value: int) -> str:
        name = f"size_{value}"
        while name in self._source:
            name += "_"
        self._names[name] = value
        return name

    def knows(self, value: int) -> bool:
        return value >= LITERAL_MIN and value in self._names.values()

    def lines(self) -> list[str]:
        return [f"{name} = {value}" for name, value in self._names.items()]


def _shape_of(tree: ast.expr) -> list[ast.expr]:
    """The extents of a random tensor, as they are in its call; [] of anything else."""
    if not isinstance(tree, ast.Call) or not ast.unparse(tree.func).startswith("torch.ran"):
        return []
    for argument in tree.args:
        if isinstance(argument, (ast.Tuple, ast.List)):
            return argument.elts
    return tree.args if ast.unparse(tree.func) != "torch.randint" else []


class _Sized(ast.NodeTransformer):
    def __init__(self, sizes: _Sizes, least: int) -> None:
        self._sizes, self._least = sizes, least

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        is_size = type(node.value) is int and node.value >= self._least
        return ast.Name(self._sizes.name(node.value)) if is_size else node  # type: ignore


class _Known(_Sized):
    """Only sizes that the inputs have as well."""

    def __init__(self, sizes: _Sizes) -> None:
        super().__init__(sizes, LITERAL_MIN)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        is_known = type(node.value) is int and self._sizes.knows(node.value)
        return super().visit_Constant(node) if is_known else node
