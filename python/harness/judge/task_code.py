# SPDX-License-Identifier: Apache-2.0
"""Runs a task's own code, and decides whether an exception is the task's or ours.

`run` converts a task's exception to a Refusal, and `attempt` catches that where a task may fail.
Any other exception is a defect of ours: no code catches it, and the judge's response is `infra`.
Exceptions of our own modes (cost.py, rounding.py) while they watch the task's operators cannot be
distinguished from the task's.
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
    """The result of the task's code. Raises Refusal("task"), which names the stage and keeps the
    lines, for exceptions and exits of the task.

    An out-of-memory error is passed on, since memory may suffice at another time.
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
    """The result, or None if the task fails or memory runs out."""
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


def model_and_inputs(module: ModuleType) -> tuple[torch.nn.Module, Any]:
    """A task's unchanged model, and its inputs."""
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
