# SPDX-License-Identifier: Apache-2.0
"""Estimates the cost of running a task, on the meta device, which has no data."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch._compile import _disable_dynamo
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from harness.judge import task_code
from harness.worker.program import forget_module
from harness.worker.region import state_of, tensors_of
from harness.judge.task import Task
from harness.worker.wire import TASK_FILE

ELEMENT_WORK = 16  # Flops that cost as much as a pointwise result's element, without a GPU.
HIDDEN = "__dynamo_disable"  # The attribute where PyTorch's wrapper keeps the hidden function.


_WARM_UP = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 2, 3),
            torch.nn.BatchNorm2d(2),
            torch.nn.GELU(),
            torch.nn.LayerNorm(4),
        )
    def forward(self, x):
        x = torch.softmax(self.layers(x), -1)
        return x @ x + x.sum()
def get_inputs():
    return [torch.rand(2, 1, 6, 6)]
def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Cost:
    """One forward: operations, bytes of inputs and outputs, of state, of the largest tensor."""

    work: int
    bytes_io: int
    bytes_state: int
    bytes_tensor_max: int
    shapes: tuple[tuple[int, ...], ...]  # The inputs' shapes.
    has_empty: bool  # An operation made a tensor without elements.


class _NoModules(nullcontext[None]):
    """FlopCounterMode's ModuleTracker, whose hooks fail where `forward` calls autograd.grad."""

    parents = frozenset({"Global"})


def flop_counter() -> FlopCounterMode:
    """Counts the operations of products, convolutions and attention."""
    counter = FlopCounterMode(display=False)
    setattr(counter, "mod_tracker", _NoModules())
    return counter


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.work = 0
        self.bytes_max = 0
        self.has_empty = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made = tensors_of(result)
        if func._overloadpacket in flop_registry:
            count = flop_registry[func._overloadpacket]
            self.work += int(count(*args, **(kwargs or {}), out_val=result))
        elif not is_view(func):
            sizes = [tensor.numel() for tensor in [*made, *tensors_of(list(args))]]
            self.work += ELEMENT_WORK * max(sizes, default=0)
        self.has_empty = self.has_empty or any(tensor.numel() == 0 for tensor in made)
        self.bytes_max = max([self.bytes_max, *(bytes_of(tensor) for tensor in made)])
        return result

    def add_layer(self, _name: str, args: Any, _result: Any) -> None:
        """A recurrent layer: each step multiplies by every weight."""
        steps = args[0].numel() // args[0].shape[-1]
        self.work += 2 * steps * sum(weight.numel() for weight in args[2])


class NoGenerators(TorchFunctionMode):
    """Drops generator arguments, which the meta device does not support."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = {name: value for name, value in (kwargs or {}).items() if name != "generator"}
        return function(*args, **kwargs)


class RecurrentLayers(TorchFunctionMode):
    """Computes the cost of recurrent layers by formula: step by step the meta device takes a
    minute.

    `note` gets each layer's name, arguments and result.
    """

    def __init__(self, note: Callable[[str, Any, Any], None]) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(function, "__name__", "")
        padded = len(args) == 9 and isinstance(args[2], (list, tuple))  # No PackedSequence.
        if name not in ("lstm", "gru", "rnn_tanh", "rnn_relu") or not padded:
            return function(*args, **(kwargs or {}))
        inputs, states, directions = args[0], tensors_of(args[1]), 1 + bool(args[7])
        output = inputs.new_empty(*inputs.shape[:-1], directions * states[0].shape[-1])
        result = (output, *(torch.empty_like(state) for state in states))
        self._note(name, args, result)
        return result


def is_view(func: Any) -> bool:
    returned = [value.alias_info for value in func._schema.returns]
    return any(info is not None and not info.is_write for info in returned)


def bytes_of(tensor: torch.Tensor) -> int:
    """The size of a copy; a view may have more elements than its memory."""
    return tensor.numel() * tensor.element_size()


def estimate(task: Task, bound: Mapping[str, int]) -> Cost:
    """The cost of one forward with these sizes. Raises Refusal for an exception of the program."""
    meta, counter = torch.device("meta"), _Counter()
    with warnings.catch_warnings(), meta, torch.no_grad(), task.running(meta), NoGenerators():
        warnings.simplefilter("ignore")
        module = task.run(bound)
        model, inputs = task_code.model_and_inputs(module)
        with RecurrentLayers(counter.add_layer), counter:
            outputs = task_code.forward(model, inputs)
    given = tensors_of(inputs)
    return Cost(
        work=counter.work,
        bytes_io=sum(bytes_of(tensor) for tensor in [*given, *tensors_of(outputs)]),
        bytes_state=sum(bytes_of(tensor) for tensor in state_of(model).values()),
        bytes_tensor_max=counter.bytes_max,
        shapes=tuple(tuple(tensor.shape) for tensor in given),
        has_empty=counter.has_empty,
    )


def warm_up() -> None:
    """Makes torch import the modules that the meta device needs, so that forks share them."""
    _defer_dynamo()
    estimate(Task(_WARM_UP), {})
    forget_module(TASK_FILE)


def _defer_dynamo() -> None:
    """Lets functions that PyTorch hides from torch.compile run without torch._dynamo.

    Such a function has a wrapper; many functions of the meta device have one. The first call of a
    wrapper imports torch._dynamo, which takes a second, and keeps the hidden function. Nothing is
    compiled before that import, so the function itself serves until then.
    """
    code = getattr(_disable_dynamo(_defer_dynamo), "__code__")
    for wrapper in gc.get_objects():
        if type(wrapper) is FunctionType and wrapper.__code__ is code:
            _defer_dynamo_of(wrapper)


def _defer_dynamo_of(wrapper: FunctionType) -> None:
    cells = dict(zip(wrapper.__code__.co_freevars, wrapper.__closure__ or ()))
    function = cells["fn"].cell_contents

    def direct(*args: Any, **kwargs: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*args, **kwargs)
        vars(function).pop(HIDDEN, None)
        return wrapper(*args, **kwargs)

    vars(function).setdefault(HIDDEN, direct)
