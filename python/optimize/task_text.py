# SPDX-License-Identifier: Apache-2.0
"""The user's file as a task: the unchanged text, followed by definitions that a task needs.

text, name = task_text(Path("rms_norm.py"), Wanted(init="64", inputs="f32[32,64]"))
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.importer.task_text import Sized, Sizes

DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "i64": "int64",
    "i32": "int32",
    "bool": "bool",
}
EXAMPLE = "example_inputs"


class BadModule(Exception):
    """A file, or an option, from which no task can be made; the text is for the user."""


@dataclass(frozen=True)
class Wanted:
    """The user's options; "" if an option was not given."""

    class_name: str = ""
    init: str = ""
    inputs: str = ""


def task_text(path: Path, wanted: Wanted) -> tuple[str, str]:
    """The task's text and the name of the class.  Raises BadModule."""
    source = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise BadModule(f"line {error.lineno}: {error.msg}") from None
    _refuse_local_imports(tree, path)
    name = _class_name(tree, wanted.class_name)
    sizes = Sizes(source)
    makers = [*_inputs(tree, wanted, sizes), *_initials(tree, name, wanted, sizes)]
    parts = [source.rstrip("\n") + "\n", "\n".join(sizes.lines()), *makers]
    if name != "Model":
        parts.append(f"Model = {name}")
    added = [part for part in parts[1:] if part]
    return "\n\n".join([parts[0], *added]) + ("\n" if added else ""), name


def _refuse_local_imports(tree: ast.Module, path: Path) -> None:
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            if node.level:
                raise BadModule(
                    f"line {node.lineno}: a relative import: put what it needs into the file"
                )
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            root = path.parent / name.split(".")[0]
            if root.with_suffix(".py").is_file() or (root / "__init__.py").is_file():
                raise BadModule(
                    f"line {getattr(node, 'lineno', 0)}: {name} is a file beside it: put what it "
                    "needs into the file"
                )


# ---- The class ----------------------------------------------------------------------------------


def _class_name(tree: ast.Module, wanted: str) -> str:
    names = [*_modules_of(tree)]
    if wanted:
        if not any(one.name == wanted for one in _classes_of(tree)):
            raise BadModule(f"--class {wanted}: the file has {', '.join(names) or 'no nn.Module'}")
        return wanted
    if "Model" in names:
        return "Model"
    if len(names) == 1:
        return names[0]
    if not names:
        raise BadModule("no class of the file derives from nn.Module: --class names one")
    raise BadModule(f"several modules, {', '.join(names)}: --class names one")


def _classes_of(tree: ast.Module) -> list[ast.ClassDef]:
    return [statement for statement in tree.body if isinstance(statement, ast.ClassDef)]


def _modules_of(tree: ast.Module) -> Iterator[str]:
    """The classes that derive from nn.Module, through others of the file as well."""
    found: set[str] = set()
    for one in _classes_of(tree):
        bases = {ast.unparse(base).split(".")[-1] for base in one.bases}
        if "Module" in bases or bases & found:
            found.add(one.name)
            yield one.name


# ---- Arguments ----------------------------------------------------------------------------------


def _constant(sizes: Sizes, value: int) -> str:
    """The name of a size's constant; for 0 and 1, which are not varied as sizes, the number."""
    return sizes.name(value) if value > 1 else str(value)


def _call_of(option: str, text: str) -> ast.Call:
    """The arguments of an option, as those of a call."""
    try:
        parsed = ast.parse(f"f({text})", mode="eval").body
    except SyntaxError:
        parsed = ast.Constant(None)
    if not isinstance(parsed, ast.Call) or any(one.arg is None for one in parsed.keywords):
        raise BadModule(f"{option}: expected arguments as in a call of Python, got {text!r}")
    return parsed


def _maker(name: str, positional: list[str], named: dict[str, str]) -> str:
    made = f"[{', '.join(positional)}]"
    if named:
        made = f"[{made}, {{{', '.join(f'{key!r}: {value}' for key, value in named.items())}}}]"
    return f"def {name}():\n    return {made}"


def _defines(tree: ast.Module, name: str) -> bool:
    return any(isinstance(one, ast.FunctionDef) and one.name == name for one in tree.body)


def _inputs(tree: ast.Module, wanted: Wanted, sizes: Sizes) -> Iterator[str]:
    if wanted.inputs:
        call = _call_of("--inputs", wanted.inputs)
        positional = [_input(one, sizes) for one in call.args]
        named = {str(one.arg): _input(one.value, sizes) for one in call.keywords}
        yield _maker("get_inputs", positional, named)
    elif not _defines(tree, "get_inputs"):
        example = _example(tree, sizes)
        if not example:
            raise BadModule(
                f"no inputs: give --inputs 'f32[64,1024]', or define get_inputs or {EXAMPLE}"
            )
        yield f"def get_inputs():\n    return {example}"


def _example(tree: ast.Module, sizes: Sizes) -> str:
    """The expression of `example_inputs = …`, its numbers as sizes."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == EXAMPLE:
            is_list = isinstance(statement.value, (ast.Tuple, ast.List))
            text = ast.unparse(Sized(sizes, 2).visit(copy.deepcopy(statement.value)))
            is_whole = is_list or isinstance(statement.value, ast.Dict)
            return text if is_whole else f"[{text}]"
    return ""


def _input(node: ast.expr, sizes: Sizes) -> str:
    """`f32[64,1024]`, `i64[64]<1000` or a literal as an expression that makes it."""
    bound = 0
    spec = node
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt):
        bound, spec = _whole(node.comparators[0]), node.left
    dims: list[int] = []
    if isinstance(spec, ast.Subscript):
        inner = spec.slice
        dims = [_whole(one) for one in (inner.elts if isinstance(inner, ast.Tuple) else [inner])]
        spec = spec.value
    if not isinstance(spec, ast.Name):
        return _literal("--inputs", node)
    dtype = DTYPES.get(spec.id)
    if dtype is None:
        raise BadModule(f"--inputs: no dtype {spec.id}: use {', '.join(DTYPES)}")
    shape = f"({''.join(f'{_constant(sizes, dim)}, ' for dim in dims)})"
    if spec.id.startswith(("f", "bf")):
        if bound:
            raise BadModule("--inputs: an upper bound is for integers")
        return f"torch.randn({shape}, dtype=torch.{dtype})"
    low, high = ("0", str(bound)) if bound else ("-128", "128")
    if dtype == "bool":
        low, high = "0", "2"
    return f"torch.randint({low}, {high}, {shape}, dtype=torch.{dtype})"


def _whole(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0:
        return node.value
    raise BadModule(f"--inputs: expected a positive number, got {ast.unparse(node)}")


def _literal(option: str, node: ast.expr) -> str:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        raise BadModule(f"{option}: {ast.unparse(node)} is no literal of Python") from None
    return ast.unparse(node)


def _initials(tree: ast.Module, name: str, wanted: Wanted, sizes: Sizes) -> Iterator[str]:
    if wanted.init:
        call = _call_of("--init", wanted.init)
        positional = [_initial(one, sizes) for one in call.args]
        named = {str(one.arg): _initial(one.value, sizes) for one in call.keywords}
        yield _maker("get_init_inputs", positional, named)
    elif not _defines(tree, "get_init_inputs"):
        needed = _needed_by_constructor(tree, name)
        if needed:
            raise BadModule(f"{name} needs {', '.join(needed)}: give --init or get_init_inputs")
        yield _maker("get_init_inputs", [], {})


def _initial(node: ast.expr, sizes: Sizes) -> str:
    text = _literal("--init", node)
    is_integer = isinstance(node, ast.Constant) and type(node.value) is int
    return sizes.name(int(text)) if is_integer and sizes.has_constant(int(text)) else text


def _needed_by_constructor(tree: ast.Module, name: str) -> list[str]:
    for one in _classes_of(tree):
        for method in one.body if one.name == name else []:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                positional = [*method.args.posonlyargs, *method.args.args][1:]
                return [
                    arg.arg for arg in positional[: len(positional) - len(method.args.defaults)]
                ]
    return []
