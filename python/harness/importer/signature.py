# SPDX-License-Identifier: Apache-2.0
"""Guesses constructor arguments from a signature: from defaults, annotations, the text's uses of a
parameter, and usual values for its name. A parameter whose attributes are read becomes
`settings()`, a namespace.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from harness.importer.sources import SourceFile

GUESSES_MAX = 6  # A limit for each width.
# The sandbox makes a namespace or a dict of these, with the members that are read.
SETTINGS, MAPPING = "settings()", "mapping()"

# Numbers by name; the first match applies. Sizes are small enough for a CPU.
_NUMBERS = (
    (r"drop|^p$|_prob$|_pdrop$", "0.0"),
    (r"^use_|^is_|^with_|^has_|bias|affine|residual|norm_first|causal|learnable|shortcut", "True"),
    (r"^return_|output_attention|inplace|distil|verbose|pretrained|training", "False"),
    (r"kernel|^ks?$|^window", "3"),
    (r"^groups?$", "2"),
    (r"^strides?$|^dilation|^padding|^pad$", "1"),
    (r"dim_head|head_dim|^d_[kvq]$|key_dim|d_state|d_conv", "16"),
    (r"head|^h$", "4"),
    (r"class(es)?$|num_cls|out_dim|output_size|n_out|c_out", "10"),
    (r"num_tokens|vocab|num_emb|n_emb$|dictionary", "256"),
    (r"depth|layers?$|blocks|^n_?rep|repeat|steps?$|iter|experts|^top_?k$|num_branch", "2"),
    (r"patch_(size|len)", "8"),
    (r"image|img|resolution|feat_size|^size$|height|width$|^[hw]$", "32"),
    (r"seq|length|max_len|^n$|num_patches|^l$|frames|_len$|block_size", "64"),
    (r"eps|epsilon", "1e-5"),
    (r"reduction|ratio|factor|expan|mult|scale_factor|upscale", "2"),
    (r"^in_chans$|^in_channels?$|chan|dim|planes|feat|hidden|embed|filters|d_model|d_ff|n_embd"
     r"|^c\d?$|^in_|^out_|_in$|inp|oup|size|model|num", "64"),
    (r"alpha|gamma|beta|temp|margin|lambda|weight|scale|slope|theta|lr|tau|sigma|momentum", "0.5"),
)  # fmt: skip
_PAIRS = r"window|resolution|input_size|img_size|image_size|feat_size|shape"  # (height, width)
_OBJECT = r"^(norm|act|fn|net|module|block|layer|encoder|decoder|backbone|activation)(_layer)?$"
_CLASSES = (
    (r"norm", ("nn.LayerNorm", "nn.BatchNorm2d")),
    (r"act|nonlin", ("nn.ReLU", "nn.functional.relu")),
    (r"", ("nn.Identity",)),
)
_MODULES = ((r"act|nonlin", ("nn.ReLU()",)), (r"", ("nn.Identity()",)))
_BY_ANNOTATION = {
    "int": "64",
    "float": "0.5",
    "bool": "False",
    "str": "''",
    "tuple": "(3, 3)",
    "list": "[64]",
    "nn.Module": "nn.Identity()",
    "Callable": "nn.ReLU()",
}
_CONFIG = r"(config|settings|args|arguments|params|options|cfg)$"
_METHODS = {"shape", "size", "dtype", "device", "data", "lower", "upper", "split", "copy", "pop",
            "append", "items", "keys", "values", "get", "parameters", "to"}  # fmt: skip
OF_ALL = {"torch", "nn", "F", "range", "tuple", "list", "int", "float", "dict", "functools"}
_ITERATING = {"len", "zip", "enumerate", "reversed", "sum", "max", "min", "sorted", "ModuleList",
              "Sequential", "cumsum", "list"}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    name: str
    default: str | None  # The expression; None if there is none.
    annotation: str = ""


@dataclass(frozen=True)
class Proposal:
    """Arguments as expressions; `inputs` is None if the sandbox must find them."""

    init: tuple[str, ...] = ()
    named: dict[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] | None = None
    file: SourceFile | None = None  # The file in which the expressions' names are resolved.
    owners: Mapping[str, SourceFile] = field(default_factory=dict)  # Other files, by a name's.

    def names(self) -> set[str]:
        """The names in its expressions that are not PyTorch's or Python's."""
        texts = [*self.init, *self.named.values(), *(self.inputs or ())]
        trees = [ast.parse(text, mode="eval") for text in texts]
        nodes = [one for tree in trees for one in ast.walk(tree)]
        found = {one.id for one in nodes if isinstance(one, ast.Name)}
        own = {one.id for one in nodes if isinstance(one, ast.Name) and is_store(one)}
        own |= {one.arg for one in nodes if isinstance(one, ast.arg)}
        return found - own - OF_ALL - {"settings", "mapping", "SimpleNamespace"}


def is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def number(name: str) -> str | None:
    """A usual value for a parameter or setting of this name."""
    found = (value for pattern, value in _NUMBERS if re.search(pattern, name, re.IGNORECASE))
    return next(found, None)


# ---- The signature ------------------------------------------------------------------------------


@dataclass
class _Uses:
    """The uses of a constructor's parameter in the text."""

    kinds: set[str] = field(default_factory=set)  # "called", "module", "items", "keys".
    texts: list[str] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    length: int = 2


class Signature:
    """The constructor of a class, and how a self-contained text uses its parameters."""

    def __init__(self, tree: ast.Module, name: str, configs: Mapping[str, ast.ClassDef]) -> None:
        """`configs` are the classes that may hold settings."""
        self._classes = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}
        self._name, self._configs = name, configs

    def usual(self) -> dict[str, str]:
        """The default or the likeliest guess of each parameter, in their order."""
        found = {}
        for one in self.parameters(self._name):
            uses = self._uses_of(self._name, one.name, 0)
            found[one.name] = one.default or _values(one, uses, "64", self._configs)[0]
        return found

    def proposals(self) -> Iterator[Proposal]:
        """Guesses, the likeliest first."""
        wanted = [one for one in self.parameters(self._name) if _is_wanted(one)]
        uses = {one.name: self._uses_of(self._name, one.name, 0) for one in wanted}
        seen: set[str] = set()
        for width in ("64", "16", "3"):
            choices = [_values(one, uses[one.name], width, self._configs) for one in wanted]
            ranked = sorted(
                itertools.islice(itertools.product(*map(enumerate, choices)), 500),
                key=lambda chosen: sum(rank for rank, _ in chosen),
            )
            for chosen in ranked[:GUESSES_MAX]:
                named = {one.name: value for one, (_, value) in zip(wanted, chosen)}
                if repr(named) not in seen:
                    seen.add(repr(named))
                    yield Proposal((), named)

    def parameters(self, name: str) -> list[Parameter]:
        init = self._init_of(name)
        return _parameters(init) if init is not None else []

    def _init_of(self, name: str) -> ast.FunctionDef | None:
        """The constructor of a class of the text: its own, or that of its bases."""
        node = self._classes.get(name)
        for statement in node.body if node is not None else ():
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return statement
        bases = [ast.unparse(one) for one in node.bases] if node is not None else []
        inherited = (self._init_of(base) for base in bases if base != name)
        return next((one for one in inherited if one is not None), None)

    def _uses_of(self, name: str, parameter: str, depth: int) -> _Uses:
        found = _Uses()
        init, node = self._init_of(name), self._classes.get(name)
        if init is None or node is None or depth > 4:
            return found
        kept = {
            target.attr
            for one in ast.walk(init)
            if isinstance(one, ast.Assign) and _is_name(one.value, parameter)
            for target in one.targets
            if isinstance(target, ast.Attribute)
        }
        for method in [init, *(one for one in node.body if isinstance(one, ast.FunctionDef))]:
            for one in ast.walk(method):
                own = parameter if method is init else ""
                self._note(found, one, own, kept, method is init, depth)
        return found

    def _note(
        self, found: _Uses, one: ast.AST, own: str, kept: set[str], in_init: bool, depth: int
    ) -> None:
        def is_parameter(node: ast.AST) -> bool:
            if isinstance(node, ast.Attribute) and _is_name(node.value, "self"):
                return node.attr in kept
            return bool(own) and _is_name(node, own)

        if isinstance(one, ast.Call):
            if is_parameter(one.func):
                found.kinds.add("called" if in_init else "module")
            self._note_call(found, one, is_parameter, depth)
        elif isinstance(one, (ast.For, ast.comprehension)) and is_parameter(one.iter):
            found.kinds.add("items")
        elif isinstance(one, ast.Starred) and is_parameter(one.value):
            found.kinds.add("items")
        elif isinstance(one, ast.Subscript) and is_parameter(one.value):
            key = one.slice.value if isinstance(one.slice, ast.Constant) else None
            found.kinds.add("keys" if isinstance(key, str) else "items")
            found.length = max(found.length, key + 1 if isinstance(key, int) else 0)
        elif isinstance(one, ast.Assign) and is_parameter(one.value):
            if isinstance(one.targets[0], ast.Tuple):
                found.kinds.add("items")
                found.length = len(one.targets[0].elts)
        elif isinstance(one, ast.Attribute) and is_parameter(one.value):
            found.attributes |= {one.attr} - _METHODS
        elif isinstance(one, ast.Compare) and is_parameter(one.left):
            parts = ast.walk(ast.Tuple(one.comparators))
            values = [part.value for part in parts if isinstance(part, ast.Constant)]
            found.texts += [value for value in values if isinstance(value, str)]

    def _note_call(self, found: _Uses, call: ast.Call, is_parameter: object, depth: int) -> None:
        assert callable(is_parameter)
        name = ast.unparse(call.func).split(".")[-1]
        if name in _ITERATING and any(map(is_parameter, call.args)):
            found.kinds.add("items")
        if name not in self._classes:
            return
        names = [one.name for one in self.parameters(name)]
        passed = [*zip(names, call.args), *((one.arg or "", one.value) for one in call.keywords)]
        for inner, value in passed:
            if is_parameter(value):
                other = self._uses_of(name, inner, depth + 1)
                found.kinds |= other.kinds
                found.texts += other.texts
                found.attributes |= other.attributes


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _parameters(function: ast.FunctionDef) -> list[Parameter]:
    """The parameters of a method, without `self`."""
    positional = [*function.args.posonlyargs, *function.args.args][1:]
    num_needed = len(positional) - len(function.args.defaults)
    defaults: list[ast.expr | None] = [*([None] * num_needed), *function.args.defaults]
    pairs = [*zip(positional, defaults), *zip(function.args.kwonlyargs, function.args.kw_defaults)]
    return [
        Parameter(
            arg.arg,
            None if default is None else ast.unparse(default),
            "" if arg.annotation is None else ast.unparse(arg.annotation),
        )
        for arg, default in pairs
    ]


def _is_wanted(parameter: Parameter) -> bool:
    """True for a parameter without a default, and for dropout, which must not be random."""
    if parameter.default is None:
        return True
    return "drop" in parameter.name and parameter.default[:1].isdigit()


def _values(
    parameter: Parameter, uses: _Uses, width: str, configs: Mapping[str, ast.ClassDef]
) -> list[str]:
    """Values for a parameter, the likeliest first."""
    name = parameter.name
    annotation = parameter.annotation.strip("'\"").removeprefix("Optional[").rstrip("]")
    if parameter.default is not None:
        return ["0.0"]
    if annotation in configs:
        return [_config(configs[annotation])]
    if uses.attributes:
        fitting = [one for one in configs.values() if uses.attributes <= _members(one)]
        return [*map(_config, fitting[:2]), SETTINGS]
    if "keys" in uses.kinds:
        return [MAPPING]
    if uses.texts:
        return [repr(one) for one in dict.fromkeys(uses.texts)][:2]
    if "items" in uses.kinds:
        return _sequences(name, uses.length, width)
    known = number(name)
    if "called" in uses.kinds:
        return list(next(found for pattern, found in _CLASSES if re.search(pattern, name)))
    by_type = next((v for k, v in _BY_ANNOTATION.items() if annotation.startswith(k)), None)
    is_object = re.search(_OBJECT, name) or annotation.startswith(("nn.Module", "Callable"))
    if "module" in uses.kinds or is_object:
        return list(next(found for pattern, found in _MODULES if re.search(pattern, name)))
    if annotation.lower().startswith(("bool", "str", "tuple", "list")) and by_type:
        return [by_type]
    value = known or by_type or "64"
    return [width if value == "64" else value, *(["(8, 8)"] if re.search(_PAIRS, name) else [])]


def _sequences(name: str, length: int, width: str) -> list[str]:
    if re.search(_PAIRS, name):
        return ["(8, 8)", width]
    value = number(name) or "64"
    one = width if value == "64" else value
    return [f"[{', '.join([one] * count)}]" for count in dict.fromkeys((length, 4, 3))]


def _fields(node: ast.ClassDef) -> dict[str, str | None]:
    """The fields of a class that holds settings, with their defaults."""
    found = {}
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found[one.target.id] = None if one.value is None else ast.unparse(one.value)
        elif isinstance(one, ast.FunctionDef) and one.name == "__init__":
            found |= {each.name: each.default for each in _parameters(one)}
    return found


def _config(node: ast.ClassDef) -> str:
    """A call that makes the class; its sizes are written out, so that they can be changed."""
    given = []
    for name, default in _fields(node).items():
        if default is None:
            given.append(f"{name}={number(name) or '64'}")
        elif default.isdigit() and int(default) >= 16:
            given.append(f"{name}={default}")
        elif "drop" in name:
            given.append(f"{name}=0.0")
    return f"{node.name}({', '.join(given)})"


def _members(node: ast.ClassDef) -> set[str]:
    """The names that its instances have as attributes."""
    found = {one.name for one in node.body if isinstance(one, ast.FunctionDef)} | set(_fields(node))
    for one in ast.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Store):
            found.add(one.id if isinstance(one, ast.Name) else one.attr)
    return found


def configs_of(*trees: ast.Module) -> dict[str, ast.ClassDef]:
    """The classes that hold settings: dataclasses, named tuples, and those with such a name."""
    return {
        one.name: one
        for tree in trees
        for one in tree.body
        if isinstance(one, ast.ClassDef)
        and (
            any("dataclass" in ast.unparse(decorator) for decorator in one.decorator_list)
            or any("NamedTuple" in ast.unparse(base) for base in one.bases)
            or (re.search(_CONFIG, one.name, re.IGNORECASE) and not one.bases)
        )
    }
