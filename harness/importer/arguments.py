# SPDX-License-Identifier: Apache-2.0
"""What a class may be built from and called with, read from text alone.

`proposals` are pairs of constructor arguments and inputs as expressions of Python, the likeliest
first: examples in the repository (a `__main__` block, a test, a page), then the signature:
defaults, annotations and what parameters with such names usually hold. Nothing is run here; the
sandbox tries them (attempt.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

EXAMPLES_MAX = 6

# Values by name, the first that matches; sizes are small enough for a CPU.
_BY_NAME = (
    (r"drop|^p$|_prob", "0.0"),
    (r"kernel|^k$|^ks$|window", "3"),
    (r"^stride|^dilation|^groups?$|^padding|^pad$", "1"),
    (r"dim_head|head_dim|^d_[kv]$", "16"),
    (r"head|^h$", "4"),
    (r"class(es)?$|num_cls|out_dim|output_size|n_out", "10"),
    (r"token|vocab|num_emb|n_emb|dictionary", "256"),
    (r"depth|layers|blocks|^n_?rep|repeat|steps?$|iter", "2"),
    (r"patch_size", "8"),
    (r"image|img|resolution|feat_size|^size$|height|width|^[hw]$", "32"),
    (r"seq|length|max_len|^n$|num_patches|^l$|frames", "64"),
    (r"eps|epsilon", "1e-5"),
    (r"reduction|ratio|factor|expan|mult|scale_factor|upscale|block_size", "2"),
    (r"alpha|gamma|beta|temp|margin|lambda|weight|scale|slope|theta|lr|tau|sigma|momentum", "0.5"),
    (r"bias|^use_|^is_|^with_|affine|residual|norm_first|causal", "True"),
    (r"act|nonlin|activation", "nn.ReLU()"),
    (r"norm_layer|^norm$", "nn.Identity()"),
    (r"^fn$|module|block|^net$|layer|model|encoder|decoder|backbone", "nn.Identity()"),
    (r"chan|dim|planes|feat|hidden|width|embed|filters|^c\d?$|in_|out_|inp|oup|d_model|size", "64"),
)  # fmt: skip
_PAIRS = r"window|resolution|input_size|img_size|image_size|feat_size|shape"  # (height, width)
_BY_ANNOTATION = {
    "int": "64",
    "float": "0.5",
    "bool": "False",
    "str": "''",
    "tuple": "(3, 3)",
    "list": "[64]",
    "nn.Module": "nn.Identity()",
    "Callable": "nn.Identity()",
}


@dataclass(frozen=True)
class Parameter:
    name: str
    default: str | None  # The expression; None where there is none.
    annotation: str = ""


@dataclass(frozen=True)
class Proposal:
    """Arguments as expressions; `inputs` is None where the sandbox is to find them."""

    init: tuple[str, ...] = ()
    named: dict[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] | None = None


def parameters_of(node: ast.ClassDef, method: str) -> list[Parameter] | None:
    """Those of a method without `self`; None where the class does not define it."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == method:
            positional = [*one.args.posonlyargs, *one.args.args][1:]
            num_needed = len(positional) - len(one.args.defaults)
            defaults: list[ast.expr | None] = [*([None] * num_needed), *one.args.defaults]
            pairs = [*zip(positional, defaults), *zip(one.args.kwonlyargs, one.args.kw_defaults)]
            return [
                Parameter(
                    arg.arg,
                    None if default is None else ast.unparse(default),
                    "" if arg.annotation is None else ast.unparse(arg.annotation),
                )
                for arg, default in pairs
            ]
    return None


def proposals(node: ast.ClassDef, examples: Iterable[ast.Module]) -> Iterator[Proposal]:
    """What to try, the likeliest first."""
    shown = list(_shown(node.name, examples))
    for one in shown[:EXAMPLES_MAX]:
        yield one
    parameters = parameters_of(node, "__init__") or []
    seen = set()
    for size, has_pairs in (("64", False), ("64", True), ("16", False), ("3", False)):
        named = {one.name: _guess(one, size) for one in parameters if _is_wanted(one)}
        if has_pairs:
            named.update({name: "(8, 8)" for name in named if re.search(_PAIRS, name)})
        if None not in named.values() and repr(named) not in seen:
            seen.add(repr(named))
            yield Proposal((), {name: str(value) for name, value in named.items()})


def _is_wanted(parameter: Parameter) -> bool:
    """Those without a default, and dropout, which must not be random."""
    return parameter.default is None or re.search(r"drop", parameter.name) is not None


def _guess(parameter: Parameter, size: str) -> str | None:
    annotation = parameter.annotation.strip("'\"").removeprefix("Optional[").rstrip("]")
    if parameter.default is not None:
        return "0.0" if parameter.default[:1].isdigit() else parameter.default
    by_type = next((v for k, v in _BY_ANNOTATION.items() if annotation.startswith(k)), None)
    if annotation.lower().startswith(("nn.module", "callable", "bool", "str", "tuple", "list")):
        return by_type
    for pattern, value in _BY_NAME:
        if re.search(pattern, parameter.name, re.IGNORECASE):
            return size if value == "64" else value
    return size if by_type in (None, "64") else by_type


# ---- Examples -----------------------------------------------------------------------------------


def _shown(name: str, trees: Iterable[ast.Module]) -> Iterator[Proposal]:
    """The calls of the class in the trees, and what its instances are called with."""
    seen: set[str] = set()
    for tree in trees:
        for body in _bodies(tree):
            for proposal in _shown_in(name, body):
                if (key := repr(proposal)) not in seen:
                    seen.add(key)
                    yield proposal


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The statements of the module, of its `__main__` block and of its tests, each as one list."""
    yield tree.body
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            yield [*tree.body, *node.body]
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield node.body


def _shown_in(name: str, body: list[ast.stmt]) -> Iterator[Proposal]:
    values: dict[str, ast.expr] = {}
    instances: dict[str, Proposal] = {}
    for statement in body:
        for call in [one for one in ast.walk(statement) if isinstance(one, ast.Call)]:
            if isinstance(call.func, ast.Name) and call.func.id in instances:
                built = instances.pop(call.func.id)
                inputs = tuple(_resolved(one, values) for one in call.args)
                if inputs and all(map(_is_closed, inputs)):
                    yield Proposal(built.init, built.named, inputs)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            target = statement.targets[0].id
            values[target] = statement.value
            construction = _construction(name, statement.value)
            if construction is not None:
                built = _built(construction, values)
                if all(map(_is_closed, [*built.init, *built.named.values()])):
                    instances[target] = built
    yield from instances.values()


def _construction(name: str, value: ast.expr) -> ast.Call | None:
    """The call of the class in `Name(…)`, `module.Name(…)` or `Name(…).cuda()`."""
    for call in [one for one in ast.walk(value) if isinstance(one, ast.Call)]:
        if ast.unparse(call.func).split(".")[-1] == name:
            return call
    return None


def _built(call: ast.Call, values: dict[str, ast.expr]) -> Proposal:
    named = {str(one.arg): _resolved(one.value, values) for one in call.keywords}
    named.update({key: "0.0" for key in named if "drop" in key})
    return Proposal(tuple(_resolved(one, values) for one in call.args), named)


class _Values(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values
        self._depth = 0

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._values or self._depth > 4:
            return node
        self._depth += 1
        value = self.visit(ast.parse(ast.unparse(self._values[node.id]), mode="eval").body)
        self._depth -= 1
        return value  # type: ignore[no-any-return]


def _resolved(node: ast.expr, values: dict[str, ast.expr]) -> str:
    """The expression with the names that the block assigns replaced by what they are."""
    return ast.unparse(_Values(values).visit(ast.parse(ast.unparse(node), mode="eval").body))


def _is_closed(text: str) -> bool:
    """True for an expression of literals and of PyTorch, which needs no other name."""
    tree = ast.parse(text, mode="eval")
    names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
    return names <= {"torch", "nn", "F", "range", "tuple", "list", "int", "float"} and all(
        not isinstance(one, (ast.Lambda, ast.Starred)) for one in ast.walk(tree)
    )
