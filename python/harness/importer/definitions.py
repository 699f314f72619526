# SPDX-License-Identifier: Apache-2.0
"""Definitions and workloads, the schema of flashinfer-trace and SOL-ExecBench, as tasks.

A definition is a JSON file with axes, inputs, outputs and the text of a reference with `run`.  Its
workloads are the lines of workload.jsonl beside it, or of a file with its name elsewhere in the
folder; the workload of median size is taken.  Axes that workloads set become constants of the task,
so that the judge tries other sizes; for axes that the definition fixes, the model refuses other
sizes.  Texts are parsed here, and nothing is run.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from harness.importer.sources import FILE_BYTES_MAX, Refused, Row, parsed

_MEMBERS = {"name", "axes", "inputs", "outputs", "reference"}
_ARITHMETIC = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub,
    ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub,
)  # fmt: skip
# An expression for a random tensor of a shape, as the authors' own tools draw it.
_DRAWN = {
    **{
        name: f"torch.randn(({{}}), dtype=torch.{name})"
        for name in ("float64", "float32", "float16", "bfloat16")
    },
    **{
        name: f"torch.randn(({{}})).clamp(-2.0, 2.0).to(torch.{name})"
        for name in ("float8_e4m3fn", "float8_e5m2")
    },
    **{
        name: f"torch.randint(-1024, 1024, ({{}}), dtype=torch.{name})"
        for name in ("int64", "int32", "int16")
    },
    "int8": "torch.randint(-128, 128, ({}), dtype=torch.int8)",
    "bool": "torch.randint(0, 2, ({}), dtype=torch.bool)",
}


@dataclass(frozen=True)
class Definition:
    path: Path
    body: dict[str, Any]
    workloads: list[dict[str, Any]]


def definitions_of(folder: Path) -> Iterator[Row | tuple[str, str]]:
    """The tasks of a folder; (origin, reason) for each definition that is not a task."""
    for definition in all_definitions(folder):
        name = re.sub(r"\W+", "_", str(definition.body["name"]))
        origin = f"{name}:{definition.path.relative_to(folder)}"
        try:
            yield Row(origin, task_of(definition))
        except Refused as refused:
            yield origin, str(refused)


def all_definitions(folder: Path) -> Iterator[Definition]:
    for path in sorted(folder.rglob("*.json")):
        body = _json(path)
        if isinstance(body, dict) and body.keys() >= _MEMBERS:
            yield Definition(path, body, _workloads(folder, path, str(body["name"])))


def _json(path: Path) -> Any:
    if path.stat().st_size > FILE_BYTES_MAX:
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError):
        return None


def _workloads(folder: Path, path: Path, name: str) -> list[dict[str, Any]]:
    beside = path.parent / "workload.jsonl"
    files = [beside] if beside.is_file() else sorted(folder.rglob(f"{path.stem}.jsonl"))
    found = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
                found.append(row.get("workload", row))
            except (ValueError, AttributeError):
                continue
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("axes"), dict)]


# ---- Text ---------------------------------------------------------------------------------------


def task_of(definition: Definition) -> str:
    """The text of the task.  Raises Refused."""
    body = definition.body
    if not definition.workloads:
        raise Refused("no workload: no workload.jsonl beside it, and no file with its name")
    by_size = sorted(definition.workloads, key=lambda one: prod(map(_whole, one["axes"].values())))
    workload = by_size[len(by_size) // 2]
    reference = str(body["reference"]).strip()
    tree = parsed(reference)
    bound = {getattr(node, "name", "") for node in tree.body}
    if "run" not in bound:
        raise Refused("not read: its reference defines no run")
    if "Model" in bound:
        raise Refused("not read: its reference defines a Model")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | bound
    axes = _Axes(body["axes"], workload["axes"], used)
    inputs = _Inputs(body, workload, axes)
    names = ", ".join(inputs.tensors)
    parts = [
        reference,
        "\n".join(f"{axes.name(axis)} = {_whole(size)}" for axis, size in workload["axes"].items()),
        f"class Model(torch.nn.Module):\n    def forward(self, {names}):\n{inputs.checks}"
        f"        return run({', '.join(inputs.given)})",
        f"def get_inputs():\n{inputs.lines}    return [{names}]",
        "def get_init_inputs():\n    return []",
    ]
    head = "" if re.search(r"^import torch$", reference, re.MULTILINE) else "import torch\n\n"
    return head + "\n\n\n".join(part for part in parts if part) + "\n"


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise Refused("not read: the size of an axis is no whole number")
    return value


class _Axes:
    """The expression of each axis, over the task's constants."""

    def __init__(self, declared: dict[str, Any], given: dict[str, Any], used: set[str]) -> None:
        self._declared = declared
        self._given = given
        self._used = used  # Names of the reference's text.
        if len({axis.upper() for axis in given}) < len(given):
            raise Refused("not read: two axes differ in the case of their letters alone")

    def name(self, axis: str) -> str:
        if not axis.isidentifier():
            raise Refused(f"not read: an axis has the name {axis[:40]!r}")
        return axis.upper() if axis.upper() not in self._used else f"SIZE_{axis.upper()}"

    def is_fixed(self, axis: object) -> bool:
        """True if no workload changes the axis."""
        text = ast.parse(self.text(axis), mode="eval")
        return not any(isinstance(node, ast.Name) for node in ast.walk(text))

    def text(self, axis: object, depth: int = 0) -> str:
        if type(axis) is int:
            return str(axis)
        kind = self._declared.get(axis, {}) if isinstance(axis, str) else {}
        if not isinstance(kind, dict) or depth > len(self._declared):
            raise Refused("not read: an axis is not declared")
        if isinstance(axis, str) and axis in self._given:
            return self.name(axis)
        if kind.get("type") == "const":
            return str(_whole(kind.get("value")))
        if kind.get("type") == "expr":
            return f"({self._expression(str(kind.get('expression')), depth)})"
        raise Refused(f"no workload has the axis {str(axis)[:40]!r}")

    def _expression(self, text: str, depth: int) -> str:
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise Refused("not read: the expression of an axis is no Python") from None
        if not all(isinstance(node, _ARITHMETIC) for node in ast.walk(tree)):
            raise Refused("not read: the expression of an axis has more than arithmetic")
        outer = self

        class Named(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.AST:
                return ast.parse(outer.text(node.id, depth + 1), mode="eval").body

        return ast.unparse(Named().visit(tree))


class _Inputs:
    """Expressions and lines for the inputs.

    tensors: the names of forward's parameters.
    given: the arguments of run.
    lines: the lines of get_inputs.
    checks: lines of forward that refuse other sizes of fixed axes.
    """

    def __init__(self, body: dict[str, Any], workload: dict[str, Any], axes: _Axes) -> None:
        self.tensors: list[str] = []
        self.given: list[str] = []
        self.lines = ""
        self.checks = ""
        sources = workload.get("inputs", {})
        made = [name for name, source in sources.items() if source.get("type") == "custom"]
        if made:
            self.lines += self._made(str(body.get("custom_inputs_entrypoint")), body, sources, axes)
        for name, tensor in body["inputs"].items():
            if not name.isidentifier():
                raise Refused(f"not read: an input has the name {name[:40]!r}")
            self._add(name, tensor, sources.get(name, {"type": "random"}), axes)

    def _made(
        self, function: str, body: dict[str, Any], sources: dict[str, Any], axes: _Axes
    ) -> str:
        if not function.isidentifier():
            raise Refused("not read: no function makes its custom inputs")
        scalars = {name: one["value"] for name, one in sources.items() if one["type"] == "scalar"}
        sizes = {axis: axes.text(axis) for axis in body["axes"]}
        members = [f"{key!r}: {value}" for key, value in {**sizes, **scalars}.items()]
        return f"    made = {function}({{{', '.join(members)}}}, torch.device('cpu'))\n"

    def _add(self, name: str, tensor: dict[str, Any], source: dict[str, Any], axes: _Axes) -> None:
        kind = source.get("type")
        if kind == "scalar":
            if type(source.get("value")) not in (int, float, bool):
                raise Refused(f"not read: the scalar {name} is no number")
            self.given.append(repr(source["value"]))
            return
        self.given.append(name)
        self.tensors.append(name)
        for index, axis in enumerate(tensor["shape"] or []):
            if axes.is_fixed(axis):
                self.checks += f"        assert {name}.shape[{index}] == {axes.text(axis)}\n"
        if kind == "custom":
            self.lines += f"    {name} = made[{name!r}]\n"
        elif kind == "random":
            shape = ", ".join(map(axes.text, tensor["shape"] or []))
            drawn = _DRAWN.get(tensor["dtype"])
            if drawn is None:
                raise Refused(f"cannot be judged: {name} is of the type {tensor['dtype']}")
            self.lines += f"    {name} = {drawn.format(f'{shape},' if shape else '')}\n"
        else:
            raise Refused(f"no inputs found: {name} is in a file ({kind})")
