# SPDX-License-Identifier: Apache-2.0
"""The operators of a KernelBench-format module, read from its text: for counting overlaps.

Surface form does not count: `torch.relu(x)`, `F.relu(x)`, `x.relu()` and `self.act(x)` with
`self.act = nn.ReLU()` are all "relu". Sizes and literals do not count either.
"""

from __future__ import annotations

import ast

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.MatMult: "matmul"}
_SAME = {"mm": "matmul", "bmm": "matmul", "amax": "max", "amin": "min", "clip": "clamp",
         "absolute": "abs", "negative": "neg", "swish": "silu"}  # fmt: skip
_IGNORED = {"size", "view", "reshape", "float", "contiguous", "dim", "numel", "t", "unsqueeze"}


def operators_of(source: str) -> list[str]:
    """In the order of evaluation; empty where `Model.forward` cannot be read."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    model = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    if model is None:
        return []
    layers: dict[str, str] = {}
    for node in ast.walk(model):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if isinstance(target, ast.Attribute):
                layers[target.attr] = _plain(_last(node.value.func))
    names: list[str] = []
    for method in model.body:
        if isinstance(method, ast.FunctionDef) and method.name == "forward":
            for statement in method.body:
                _visit(statement, layers, names)
    return names


def _visit(node: ast.AST, layers: dict[str, str], names: list[str]) -> None:
    for child in ast.iter_child_nodes(node):
        _visit(child, layers, names)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        names.append(_BINARY[type(node.op)])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if not isinstance(node.operand, ast.Constant):
            names.append("neg")
    elif isinstance(node, ast.Call):
        name = _last(node.func)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id == "self" and name in layers:
            names.append(layers[name])
        elif _plain(name) not in _IGNORED:
            names.append(_plain(name))


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _plain(name: str) -> str:
    name = name.replace("_", "").lower()
    return _SAME.get(name, name)
