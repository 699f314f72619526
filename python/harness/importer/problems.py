# SPDX-License-Identifier: Apache-2.0
"""Problems of robust-kbench and of GPU MODE's reference-kernels, as tasks.

A robust-kbench folder has func_forward.py or func_backward.py, with Model and get_inputs, and for
each a JSON file with the arguments of both; the task of a backward pass returns gradients.  A
reference-kernels folder has reference.py, with ref_kernel and generate_input, and task.yml, whose
test or benchmark of median size is taken.  Whole arguments become constants of the task, so that
the judge tries other sizes.  Texts are parsed here, and nothing is run.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from harness.importer.sources import Refused, Row, parsed

Values = dict[str, Any]
_BACKWARD = """class Model(ForwardModel):
    def forward(self, *inputs):
        *given, gradient = inputs
        with torch.enable_grad():
            given = [x.detach().requires_grad_(x.is_floating_point()) for x in given]
            wanted = [x for x in [*given, *self.parameters()] if x.requires_grad]
            output = super().forward(*given)
            found = torch.autograd.grad(output, wanted, gradient, allow_unused=True)
        return tuple(x for x in found if x is not None)


def get_inputs():
    torch_inputs = draw_inputs({inputs})
    with torch.no_grad():
        output = ForwardModel({init})(*torch_inputs)
    return [*(x.detach() for x in torch_inputs), torch.randn_like(output)]"""
_FORWARD = """def get_inputs():
    return draw_inputs({inputs})"""


def problem_folders(folder: Path) -> set[Path]:
    """The folders below this one that are a problem."""
    found = {path.parent for path in folder.rglob("config_forward.json")}
    found = {path for path in found if (path / "func_forward.py").is_file()}
    return found | {path.parent for path in _references(folder)}


def problems_of(folder: Path) -> Iterator[Row | tuple[str, str]]:
    """The tasks of a folder; (origin, reason) for each problem that is not a task."""
    for path in [*sorted(folder.rglob("func_*ward.py")), *sorted(_references(folder))]:
        place = path.relative_to(folder)
        is_reference = path.name == "reference.py"
        direction = "" if is_reference else f"_{path.stem.removeprefix('func_')}"
        name = re.sub(r"\W+", "_", "_".join(path.resolve().parent.parts[-2:]))
        origin = f"{name}{direction}:{place}"
        try:
            yield Row(origin, task_of_reference(path) if is_reference else task_of_function(path))
        except Refused as refused:
            yield origin, str(refused)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            yield origin, f"not read: {type(error).__name__}: {error}"


def _references(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("reference.py") if (path.parent / "task.yml").is_file())


class _Constants:
    """The lines of constants, and the expressions of arguments over them."""

    def __init__(self, text: str) -> None:
        self._used = {node.id for node in ast.walk(parsed(text)) if isinstance(node, ast.Name)}
        self._known: dict[str, int] = {}

    def expression(self, name: str, value: object) -> str:
        if type(value) is not int:
            return repr(value)
        constant = name.upper() if name.upper() not in self._used else f"SIZE_{name.upper()}"
        return constant if self._known.setdefault(constant, value) == value else repr(value)

    def arguments(self, values: Values) -> str:
        return ", ".join(f"{name}={self.expression(name, one)}" for name, one in values.items())

    def lines(self) -> str:
        return "\n".join(f"{name} = {value}" for name, value in self._known.items())


def _joined(*parts: str) -> str:
    return "\n\n\n".join(part.strip("\n") for part in parts if part) + "\n"


# ---- robust-kbench ------------------------------------------------------------------------------


def task_of_function(path: Path) -> str:
    """The task of func_forward.py or func_backward.py.  Raises Refused."""
    direction = path.stem.removeprefix("func_")
    config = path.with_name(f"config_{direction}.json")
    if not config.is_file():
        raise Refused(f"no {config.name} beside it")
    first = {
        kind: rows[0] if (rows := json.loads(config.read_text())[f"single_{kind}_configs"]) else {}
        for kind in ("input", "init", "shared")
    }
    text = re.sub(r"\bget_inputs\b", "draw_inputs", path.read_text(encoding="utf-8"))
    text = _without(text, ("input_names", "AutogradFunction"))
    if direction == "backward":
        text = re.sub(r"\bModel\b", "ForwardModel", text)
    constants = _Constants(text)
    init = constants.arguments({**first["init"], **first["shared"]})
    inputs = constants.arguments({**first["input"], **first["shared"]})
    tail = (_BACKWARD if direction == "backward" else _FORWARD).format(inputs=inputs, init=init)
    given = f"[[], dict({init})]" if init else "[]"
    last = f"def get_init_inputs():\n    return {given}"
    return _joined(text, constants.lines(), tail, last)


def _without(text: str, names: tuple[str, ...]) -> str:
    """The text without definitions of these names and without imports of the problem's files."""
    lines = text.splitlines()
    for node in reversed(parsed(text).body):
        bound = {getattr(node, "name", "")}
        if isinstance(node, ast.Assign):
            bound = {ast.unparse(one) for one in node.targets}
        if isinstance(node, ast.ImportFrom) and node.module in ("task", "utils"):
            bound = {names[0]}
        if bound & set(names):
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines)


# ---- reference-kernels --------------------------------------------------------------------------


def task_of_reference(path: Path) -> str:
    """The task of reference.py.  Raises Refused."""
    original = path.read_text(encoding="utf-8")
    description = (path.parent / "task.yml").read_text(encoding="utf-8")
    _check(original, description)
    values = _median(description)
    text = _without(original, ("check_implementation", "verbose_allclose"))
    text = re.sub(r"""(["'])cuda\1""", '"cpu"', text)
    managers = sorted(set(re.findall(r"\b(DeterministicContext|DisableCuDNNTF32)\b", text)))
    # The judge controls TF32 and determinism.
    imports = [f"from contextlib import nullcontext as {name}" for name in managers]
    head = "\n".join([*imports, "input_t = output_t = object"])
    constants = _Constants(text)
    arguments = constants.arguments({name: values[name] for name in values if name != "seed"})
    names, destinations = _members(parsed(text))
    members = [f"torch.empty_like({one})" if one in destinations else one for one in names]
    data = members[0] if len(members) == 1 else f"({', '.join(members)})"
    model = (
        f"class Model(torch.nn.Module):\n    def forward(self, {', '.join(names)}):\n"
        f"        return ref_kernel({data})"
    )
    drawn = f"generate_input({arguments}, seed=int(torch.randint(2**31, ())))"
    whole = f"[{drawn}]" if len(names) == 1 else f"list({drawn})"
    return _joined(
        head,
        text,
        constants.lines(),
        model,
        f"def get_inputs():\n    return {whole}",
        "def get_init_inputs():\n    return []",
    )


def _check(text: str, description: str) -> None:
    tree = parsed(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if re.search(r"^multi_gpu: true", description, re.MULTILINE):
        raise Refused("cannot be judged: it needs several GPUs")
    package = re.search(r"^(?:import|from) (aiter)\b", text, re.MULTILINE)
    if package:
        raise Refused(f"not self-contained: it needs the package {package[1]}")
    if re.search(r"float4_|nvfp4|mxfp4", text):
        raise Refused("cannot be judged: it has 4-bit floats")
    if not {"ref_kernel", "generate_input"} <= functions.keys():
        raise Refused("not read: it defines no ref_kernel and generate_input")
    checker = functions.get("check_implementation")
    if checker is not None and "ref_kernel" not in ast.unparse(checker):
        raise Refused("cannot be judged: several answers are right, and a property is checked")


def _median(description: str) -> Values:
    """The arguments of the test or benchmark of median size."""
    rows = re.findall(r"^\s*- (\{.*\})", description.partition("\ntests:")[2], re.MULTILINE)
    values = [ast.literal_eval(re.sub(r"\btrue\b", "True", row)) for row in rows]
    if not values:
        raise Refused("no workload: task.yml has no test in one line")
    chosen: Values = sorted(values, key=_size)[len(values) // 2]
    return chosen


def _size(values: Values) -> int:
    return prod(one for name, one in values.items() if type(one) is int and name != "seed")


def _members(tree: ast.Module) -> tuple[list[str], set[str]]:
    """The names of the inputs that ref_kernel unpacks, and those that it only writes."""
    kernel = next(node for node in tree.body if getattr(node, "name", "") == "ref_kernel")
    parameter = kernel.args.args[0].arg  # type: ignore[attr-defined]
    names = [parameter]
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == parameter:
            if isinstance(node.targets[0], ast.Tuple):
                names = [ast.unparse(one) for one in node.targets[0].elts]
    names = [f"unused_{index}" if one == "_" else one for index, one in enumerate(names)]
    written = {
        ast.unparse(node.value)
        for node in ast.walk(kernel)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    return names, written & set(names)
