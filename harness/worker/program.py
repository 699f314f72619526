# SPDX-License-Identifier: Apache-2.0
"""Running a program text (a task's or a candidate's) as a module of its own.

Each text gets a fresh namespace and a file name that exists nowhere, with an entry in linecache so
that tracebacks and `inspect.getsource` see the text.
"""

from __future__ import annotations

import ast
import linecache
import sys
from types import ModuleType

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
    """Undoes what `run_module` left in the interpreter."""
    sys.modules.pop(file_name.removesuffix(".py"), None)
    linecache.cache.pop(file_name, None)


def construct(
    model_class: object, init: list[object], seed: int, constants: perturb.Constants | None = None
) -> torch.nn.Module:
    """`model_class(*init)` under `seed`, its constants disturbed."""
    if not callable(model_class):
        raise TypeError("the model is not a class")
    torch.default_generator.manual_seed(seed)
    with perturb.constants_disturbed(seed, constants or perturb.Constants()):
        model = model_class(*init)
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a {type(model).__name__} is not a torch.nn.Module")
    return model
