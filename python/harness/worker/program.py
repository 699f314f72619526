# SPDX-License-Identifier: Apache-2.0
"""Runs a program text (a task's or a candidate's) as its own module.

Each text gets a new namespace and the name of a file that does not exist, with an entry in
linecache so that tracebacks and `inspect.getsource` find the text.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import torch

from harness.worker import perturb


def run_module(source: str, file_name: str, tree: ast.Module | None = None) -> ModuleType:
    """Executes `source` (or `tree`, an edited form of it) as module `file_name` without suffix."""
    name = file_name.removesuffix(".py")
    lines = source.splitlines(keepends=True)
    linecache.cache[file_name] = (len(source), None, lines, file_name)
    module = ModuleType(name)
    module.__file__ = file_name
    sys.modules[name] = module
    code = compile(source if tree is None else tree, file_name, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module


def forget_module(file_name: str) -> None:
    """Removes the module from the interpreter."""
    sys.modules.pop(file_name.removesuffix(".py"), None)
    linecache.cache.pop(file_name, None)


def arguments_of(function: Callable[..., Any], given: object) -> list[Any]:
    """The arguments `[positional, named]` for `function` from the result of a task's maker.

    A maker returns a sequence of arguments, one argument alone, a dict of named arguments, or, as
    KernelBook's do, `[positional, named]`. If two of these are possible, the signature decides.
    """
    if isinstance(given, dict) and _binds(function, [], given):
        return [[], dict(given)]
    if _is_pair(given) and _binds(function, given[0], given[1]):  # type: ignore[index]
        return [list(given[0]), dict(given[1])]  # type: ignore[index]
    if given is None:
        return [[], {}]
    is_one = isinstance(given, (str, bytes, dict, torch.Tensor, torch.nn.Module))
    if is_one or not isinstance(given, Iterable):
        return [[given], {}]
    return [list(given), {}]


def _is_pair(given: object) -> bool:
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        return False
    first, second = given
    return (
        isinstance(first, (list, tuple))
        and isinstance(second, dict)
        and all(isinstance(name, str) for name in second)
    )


def _binds(function: Callable[..., Any], positional: Any, named: dict[Any, Any]) -> bool:
    try:
        inspect.signature(function).bind(*positional, **named)
    except TypeError:
        return False
    except ValueError:  # The function has no signature, so any call may fit.
        return True
    return True


def inputs_of(model: torch.nn.Module, given: object) -> Any:
    """A list, or a dict by name, as `call` takes it, of what `get_inputs` returned."""
    positional, named = arguments_of(model.forward, given)
    if named and positional:
        return dict(inspect.signature(model.forward).bind(*positional, **named).arguments)
    return named or positional


def call(model: Callable[..., Any], inputs: Any) -> Any:
    """One forward on what `inputs_of` returned."""
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def name_model(module: ModuleType) -> None:
    """Gives the module's only model the name `Model` if no class has that name.

    Helper layers are classes that the module itself uses. Raises TypeError where not exactly one
    class is left.
    """
    if callable(getattr(module, "Model", None)):
        return
    found = [name for name in _models_of(module) if name not in _names_used(module)]
    if len(found) != 1:
        found = [name for name in found or _models_of(module) if _fits(module, name)]
    if len(found) == 1:
        setattr(module, "Model", getattr(module, found[0]))
        return
    if not found:
        raise TypeError("the task does not define Model")
    names = ", ".join(found)
    raise TypeError(f"the task defines no class Model, but {names}: --entry-point names the model")


def _models_of(module: ModuleType) -> list[str]:
    """The module's own classes that have a forward of their own."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, torch.nn.Module)
        and value.__module__ == module.__name__
        and value.__name__ == name
        and value.forward is not torch.nn.Module.forward
    ]


def _names_used(module: ModuleType) -> set[str]:
    """The names that the module's text uses outside the class of that name."""
    text = "".join(linecache.getlines(str(module.__file__)))

    def names_in(node: ast.AST, own: str) -> Iterator[str]:
        if isinstance(node, ast.ClassDef):
            own = node.name
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != own:
            yield node.id
        for child in ast.iter_child_nodes(node):
            yield from names_in(child, own)

    return set(names_in(ast.parse(text), ""))


def _fits(module: ModuleType, name: str) -> bool:
    """True if the class accepts the arguments that the module makes for its model."""
    model_class = getattr(module, name)
    positional, named = arguments_of(model_class, module.get_init_inputs())
    if not _binds(model_class, positional, named):
        return False
    unbound = model_class.forward
    positional, named = arguments_of(unbound, module.get_inputs())
    return _binds(unbound, [None, *positional], named)


def construct(
    model_class: Any, init: list[Any], seed: int, constants: perturb.Constants | None = None
) -> torch.nn.Module:
    """The model of `init`, as `arguments_of` returns it, under `seed`, its constants disturbed."""
    torch.default_generator.manual_seed(seed)
    with perturb.constants_disturbed(seed, constants or perturb.Constants()):
        return build(model_class, init)


def build(model_class: Any, init: list[Any]) -> torch.nn.Module:
    """The model of `init`, with the random numbers and constants that it finds."""
    if not callable(model_class):
        raise TypeError("the model is not a class")
    positional, named = init
    model = model_class(*positional, **named)
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a {type(model).__name__} is not a torch.nn.Module")
    return model
