# SPDX-License-Identifier: Apache-2.0
"""Observes how a running model builds and calls its submodules: the arguments of their constructors
and forwards, as expressions. This runs in the sandbox.

These are the arguments that the author intended; for a class that is built from other modules or
from a configuration, there is no other source.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any

import torch
from torch import nn

from harness.worker.wire import Json

ITEMS_MAX = 64
TEXT_MAX = 4000


class _Unknown(Exception):
    """A value for which there is no expression."""


class Observer:
    """Notes constructions and forwards of modules while `watch` runs a function."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._names = {id(one): name for name, one in namespace.items() if callable(one)}
        self._built: dict[int, tuple[list[Any], dict[str, Any]]] = {}
        self._alive: list[Any] = []  # Living modules have different ids.
        self._called: dict[str, tuple[nn.Module, list[Any]]] = {}

    def watch(self, function: Callable[[], Any]) -> Any:
        sys.setprofile(self._profile)
        try:
            return function()
        finally:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_code.co_name
        if event != "call" or name not in ("__init__", "forward"):
            return
        first = frame.f_code.co_varnames[:1]
        one = frame.f_locals.get(first[0]) if first else None
        if not isinstance(one, nn.Module):
            return
        own = inspect.unwrap(getattr(type(one), name))
        if getattr(own, "__code__", None) is not frame.f_code:
            return  # The method belongs to a base class.
        given = _given(frame)
        if name == "__init__":
            self._built[id(one)] = given
            self._alive.append(one)
        elif self._names.get(id(type(one))):
            values = list(given[0])
            if not given[1]:
                self._called.setdefault(type(one).__name__, (one, values))

    def seen(self) -> Json:
        """{class: {"init", "named", "inputs"}} for each class of the namespace that was called."""
        found: Json = {}
        for name, (module, values) in self._called.items():
            try:
                positional, named = self._built[id(module)]
                found[name] = {
                    "init": [self.text(one) for one in positional],
                    "named": {key: self.text(one) for key, one in named.items()},
                    "inputs": [self.text(one) for one in _needed(module, values)],
                }
            except (_Unknown, KeyError):
                continue
        return found

    def text(self, value: Any) -> str:
        """An expression for a similar value; for a tensor only sizes and type are kept."""
        text = self._text(value)
        if len(text) > TEXT_MAX:
            raise _Unknown
        return text

    def _text(self, value: Any) -> str:
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if value - value == 0 else f"float('{value}')"
        if isinstance(value, torch.Tensor):
            return _tensor(value)
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple, torch.Size):
            return self._sequence(value)
        if isinstance(value, dict):
            items = [f"{self._text(key)}: {self._text(one)}" for key, one in value.items()]
            return f"{{{', '.join(items)}}}"
        if isinstance(value, SimpleNamespace):
            return f"SimpleNamespace({self._named(vars(value))})"
        if dataclasses.is_dataclass(value) and id(type(value)) in self._names:
            fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
            return f"{self._names[id(type(value))]}({self._named(fields)})"
        if isinstance(value, functools.partial):
            given = [self._text(one) for one in (value.func, *value.args)]
            rest = self._named(value.keywords)
            return f"functools.partial({', '.join([*given, *([rest] if rest else [])])})"
        if isinstance(value, nn.Module):
            return self._module(value)
        if isinstance(value, torch.dtype):
            return str(value)
        return self._callable(value)

    def _sequence(self, value: Any) -> str:
        if len(value) > ITEMS_MAX:
            raise _Unknown
        items = ", ".join(map(self._text, value))
        if isinstance(value, tuple):
            return f"({items}{',' if len(value) == 1 else ''})"
        return f"[{items}]"

    def _named(self, values: Mapping[str, Any]) -> str:
        return ", ".join(f"{key}={self._text(one)}" for key, one in values.items())

    def _module(self, module: nn.Module) -> str:
        positional, named = self._built.get(id(module)) or ([], {})
        if id(module) not in self._built:
            raise _Unknown
        parts = [*map(self._text, positional), *([self._named(named)] if named else [])]
        return f"{self._callable(type(module))}({', '.join(parts)})"

    def _callable(self, value: Any) -> str:
        if name := self._names.get(id(value)):
            return name
        module, name = getattr(value, "__module__", "") or "", getattr(value, "__name__", "")
        if module.startswith("torch.nn.modules") and getattr(nn, name, None) is value:
            return f"nn.{name}"
        is_function = isinstance(value, FunctionType) or inspect.isbuiltin(value)
        for owner, prefix in ((torch, "torch"), (nn.functional, "nn.functional")):
            if is_function and getattr(owner, name, None) is value:
                return f"{prefix}.{name}"
        raise _Unknown


def _given(frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
    """The positional and named arguments of a call that has just begun, without `self`."""
    code, values = frame.f_code, frame.f_locals
    count, only_named = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    positional = [values.get(name) for name in names[1:count]]
    named = {name: values.get(name) for name in names[count : count + only_named]}
    at = count + only_named
    if code.co_flags & inspect.CO_VARARGS:
        positional += list(values.get(names[at], ()))
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named |= values.get(names[at], {})
    return positional, named


def _needed(module: nn.Module, values: list[Any]) -> list[Any]:
    """The values without trailing defaults."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    while values and len(values) <= len(parameters):
        default, last = parameters[len(values) - 1].default, values[-1]
        if default is inspect.Parameter.empty or isinstance(last, torch.Tensor):
            break
        if type(last) is not type(default) or last != default:
            break
        values = values[:-1]
    return values


def _tensor(value: torch.Tensor) -> str:
    sizes = ", ".join(map(str, value.shape))
    if type(value) not in (torch.Tensor, nn.Parameter) or not value.dim():
        raise _Unknown
    if value.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        kind = "" if value.dtype == torch.float32 else f", dtype={value.dtype}"
        return f"torch.rand({sizes}{kind})"
    if value.dtype in (torch.int64, torch.int32, torch.uint8) and value.numel():
        bound = int(value.max()) + 1
        kind = "" if value.dtype == torch.int64 else f", dtype={value.dtype}"
        if int(value.min()) >= 0 and bound > 1:
            return f"torch.randint(0, {bound}, ({sizes},){kind})"
    if value.dtype in (torch.complex64, torch.complex128):
        return f"torch.randn({sizes}, dtype={value.dtype})"
    raise _Unknown
