# SPDX-License-Identifier: Apache-2.0
"""The one place where a task's own code runs, and where it is decided whose an exception is.

`run` makes a Refusal of what a task raises, and `attempt` catches that where a task may fail. Any
other exception is a defect of ours: nothing catches it, and it ends the judge's answer as `infra`.
What our own modes raise (cost.py, rounding.py) while they watch the task's operators cannot be told
from what those raise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import torch

from harness.worker.program import arguments_of, build, call, inputs_of
from harness.worker.region import CPU, tensors_of
from harness.worker.wire import TEXT_MAX, Refusal, kind_of, set_stage, text_of

P = ParamSpec("P")
T = TypeVar("T")


def run(stage: str, code: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of code of the task's. Raises Refusal("task"), which names the stage and keeps
    the lines, for what a task may raise, exits too.

    Memory that runs out stays what it is, since it may suffice at another time.
    """
    try:
        return code(*args, **kwargs)
    except Refusal:
        raise
    except (Exception, SystemExit) as error:
        if kind_of(error) == "oom":
            raise
        text = f"{type(error).__name__}: {text_of(error)}"
        if isinstance(error, ModuleNotFoundError) and error.name:
            package = error.name.partition(".")[0]
            text = f"it needs the package {package}, which the Python of $MC_PYTHON does not have"
        refusal = Refusal("task", text[:TEXT_MAX])
        set_stage(refusal, stage)
        raise refusal.with_traceback(error.__traceback__) from error


def attempt(code: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """The result, or None where the task fails in it or memory runs out."""
    try:
        return code(*args, **kwargs)
    except Exception as error:
        if not isinstance(error, Refusal) and kind_of(error) != "oom":
            raise
        return None


def init_of(module: ModuleType) -> list[Any]:
    """The arguments of a task's model, as `construct` takes them."""
    return run("get_init_inputs", lambda: arguments_of(module.Model, module.get_init_inputs()))


def inputs_for(model: torch.nn.Module, module: ModuleType, device: torch.device = CPU) -> Any:
    """The next inputs of a task, as `call` takes them."""

    def draw() -> Any:
        with device if device != CPU else contextlib.nullcontext():
            given = module.get_inputs()
        return _plain(inputs_of(model, given), "an input")

    return run("get_inputs", draw)


def made(module: ModuleType) -> tuple[torch.nn.Module, Any]:
    """A task's model as the task makes it, and its inputs."""
    model = run("init", build, module.Model, init_of(module))
    return model, inputs_for(model, module)


def forward(model: Callable[..., Any], inputs: Any) -> Any:
    return run("forward", lambda: _plain(call(model, inputs), "an output"))


def _plain(value: T, what: str) -> T:
    """The value, if all of its tensors can be passed on."""
    for tensor in tensors_of(value):
        if tensor.layout != torch.strided or tensor.is_nested:
            layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
            raise Refusal("unsupported", f"{what} is a {layout} tensor, which no judge passes on")
    return value
