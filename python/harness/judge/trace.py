# SPDX-License-Identifier: Apache-2.0
"""The operators of one forward of the reference, and forwards in which one of them is changed.

Operators are those that PyTorch's dispatcher sees, so `nn.Linear` is an `addmm`, and a softmin a
`neg` and a `softmax`. A step is an operator that computes, not a view, copy or allocation. This
module does not depend on candidates.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.worker.wire import TASK_FILE

LINE_MAX = 60  # The length to which a quoted line of the task is cut.
_COPIES = frozenset(
    "clone copy_ _to_copy detach lift_fresh alias contiguous _unsafe_view _reshape_alias".split()
)
_NAMES = {
    "_softmax": "softmax",
    "_safe_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "native_layer_norm": "layer_norm",
    "native_batch_norm": "batch_norm",
    "native_group_norm": "group_norm",
    "linalg_vector_norm": "norm",
    "max_pool2d_with_indices": "max_pool2d",
    "max_pool3d_with_indices": "max_pool3d",
    "nll_loss_forward": "nll_loss",
    "nll_loss2d_forward": "nll_loss",
    "addmm": "linear",
    "_fused_rms_norm": "rms_norm",
}


@dataclass(frozen=True)
class Call:
    """One call of an operator: its arguments by the names of its schema, defaults filled in."""

    func: Any
    arguments: dict[str, Any]

    @property
    def packet(self) -> str:
        """The operator's name without its overload: "add_" and "add" are one."""
        name: str = self.func._schema.name.removeprefix("aten::")
        return name.removesuffix("_") if self.func._schema.is_mutable else name

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {k: v for k, v in self.arguments.items() if isinstance(v, torch.Tensor)}

    def run(self, /, **changed: Any) -> Any:
        """The operator with some arguments replaced."""
        given = {**self.arguments, **changed}
        args, kwargs = [], {}
        for one in self.func._schema.arguments:
            if one.name in given:
                if one.kwarg_only:
                    kwargs[one.name] = given[one.name]
                else:
                    args.append(given[one.name])
        return self.func(*args, **kwargs)


@dataclass(frozen=True)
class Step:
    """A call without its tensors, of which only shapes are kept."""

    index: int  # Among all calls of the forward.
    number: int  # Among its steps, from 1.
    packet: str
    func: Any
    constants: dict[str, Any]  # The arguments that are not tensors.
    shapes: dict[str, tuple[int, ...]]  # The tensors among the arguments.
    result: tuple[int, ...] | None  # The shape of the result, or of its first tensor.
    line: str  # The task's own line that called it, or "".

    @property
    def name(self) -> str:
        return _NAMES.get(self.packet, self.packet)


@dataclass
class Trace:
    """The record of a forward."""

    steps: list[Step] = field(default_factory=list)
    num_calls: int = 0
    num_elements: float = 0  # Elements read and written; for products, multiplied.


def call_of(func: Any, args: Any, kwargs: Any) -> Call:
    schema = func._schema.arguments
    arguments = {one.name: one.default_value for one in schema if one.has_default_value()}
    arguments |= {one.name: value for one, value in zip(schema, args)}
    return Call(func, arguments | dict(kwargs or {}))


def first_tensor(value: Any) -> torch.Tensor | None:
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value if isinstance(value, torch.Tensor) else None


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the steps of a forward; calls `seen` with each step and its result."""

    def __init__(self, source: str, seen: Callable[[Step, torch.Tensor], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self._lines = source.splitlines()
        self._seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = call_of(func, args, kwargs)
        result = func(*args, **(kwargs or {}))
        index = self.trace.num_calls
        self.trace.num_calls += 1
        made = first_tensor(result)
        tensors = call.tensors
        is_step = tensors and call.packet not in _COPIES and not func.is_view
        if made is not None and is_step:
            self._note(index, call, tensors, made)
        return result

    def _note(
        self, index: int, call: Call, tensors: dict[str, torch.Tensor], made: torch.Tensor
    ) -> None:
        self.trace.num_elements += _work(call, tensors, made)
        step = Step(
            index,
            len(self.trace.steps) + 1,
            call.packet,
            call.func,
            {k: v for k, v in call.arguments.items() if not isinstance(v, torch.Tensor)},
            {name: tuple(one.shape) for name, one in tensors.items()},
            tuple(made.shape),
            self._line(),
        )
        self.trace.steps.append(step)
        self._seen(step, made)

    def _line(self) -> str:
        frame = sys._getframe(3)
        while frame is not None and frame.f_code.co_filename != TASK_FILE:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is None or not 0 < frame.f_lineno <= len(self._lines):
            return ""
        line = " ".join(self._lines[frame.f_lineno - 1].split()).replace('"', "'")
        return line if len(line) <= LINE_MAX else line[: LINE_MAX - 3] + "..."


def _work(call: Call, tensors: dict[str, torch.Tensor], made: torch.Tensor) -> float:
    work = float(made.numel() + sum(one.numel() for one in tensors.values()))
    if call.packet in ("mm", "addmm", "bmm", "baddbmm"):
        last = list(tensors.values())[-1]
        work += made.numel() * last.shape[-2] / 16
    elif call.packet == "convolution":
        weight = tensors["weight"]
        work += made.numel() * weight.numel() / max(1, weight.shape[0]) / 16
    return work


class Changed(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Replaces the results of some calls of a forward, chosen by index."""

    def __init__(self, changes: dict[int, Callable[[Call], Any]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._changes = changes
        self._index = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        change = self._changes.get(self._index)
        self._index += 1
        if change is None:
            return func(*args, **(kwargs or {}))
        call = call_of(func, args, kwargs)
        if not func._schema.is_mutable:
            if len(func._schema.returns) == 1:
                return change(call)
            results, changed = func(*args, **(kwargs or {})), change(call)
            # An operator with several results has its first one changed.
            return changed if isinstance(changed, (list, tuple)) else (changed, *results[1:])
        target = call.tensors["self"]
        before = target.clone()
        value = change(Call(func, {**call.arguments, "self": before}))
        if value is not target:
            target.copy_(value)
        return target
