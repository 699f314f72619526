# SPDX-License-Identifier: Apache-2.0
"""The table of perturbations: changes that candidates make to one operator of the reference.

A perturbation is a description ("replaced by sum") and a function from the operator's call to its
replacement. `perturbations_of` yields those that fit some steps, the likeliest kinds first:
arguments that are left out or changed, near operators, parts of operands, any operator of the same
form. diagnosis.py runs the reference with each one and compares the candidate's output. The
operators and values are in tables (operator_mistakes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from harness.judge.operator_mistakes import (
    ALSO_UNARY,
    ARGUMENTS,
    BINARY,
    COMPARISONS,
    PARTS,
    PRODUCTS,
    REDUCING,
    REDUCTIONS,
    SOFTMAXES,
    UNARY,
    WORDS,
    Binary,
    Reduction,
    Unary,
)
from harness.judge.trace import Call, Step


@dataclass(frozen=True)
class Perturbation:
    words: str
    change: Callable[[Call], Any]


def perturbations_of(steps: Sequence[Step]) -> Iterator[tuple[Step, Perturbation]]:
    """All perturbations that fit some steps: the likeliest kind for each step, then the next
    kind.
    """
    for make in (_left_out, _arguments, _similar, _parts, _operands, _any_operator):
        for step in steps:
            yield from ((step, one) for one in make(step))


def line_perturbations(
    before: tuple[int, ...], after: tuple[int, ...]
) -> Iterator[tuple[str, Unary]]:
    """Perturbations of all operators of one line together, by the shapes around them."""
    if before == after:
        yield "left out", lambda x: x
        for name, unary in UNARY.items():
            yield f"replaced by {name}", unary
    for axis in range(len(before)):
        kept = (*before[:axis], 1, *before[axis + 1 :])
        if after in (kept, (*before[:axis], *before[axis + 1 :])) and before[axis] > 1:
            for name, reduction in REDUCTIONS.items():
                yield f"replaced by {name}", partial(_along_axis, reduction, axis, after)


def _along_axis(
    reduction: Reduction, axis: int, shape: tuple[int, ...], x: torch.Tensor
) -> torch.Tensor:
    return reduction(x, (axis,)).reshape(shape)


# ---- Left out, and other arguments --------------------------------------------------------------


def _left_out(step: Step) -> Iterator[Perturbation]:
    same = [name for name, shape in step.shapes.items() if shape == step.result]
    for name in same:
        words = "left out" if len(same) == 1 or name == same[0] else "left out: its second operand"
        yield Perturbation(words, partial(_argument, name))
    for one in step.func._schema.arguments:
        if one.name in ("weight", "bias") and one.name in step.shapes:
            if isinstance(one.type, torch._C.OptionalType):
                yield Perturbation(f"without its {one.name}", _with({one.name: None}))
    if "weight" in step.shapes and "bias" in step.shapes and step.packet != "convolution":
        change = _with({"weight": None, "bias": None})
        yield Perturbation("without its weight and bias", change)


def _arguments(step: Step) -> Iterator[Perturbation]:
    for name, now in step.constants.items():
        # The kernel of batch_norm would read missing running statistics.
        has_all = name != "training" or "running_mean" in step.shapes
        for value in ARGUMENTS.get(name, ()) if has_all else ():
            if value == now or type(now) is bool and type(value) is not bool or now is None:
                continue
            shown = "nothing" if now is None else f"{now:g}" if isinstance(now, float) else str(now)
            plain = f"with {name} {value:g}" if isinstance(value, float) else f"with {name} {value}"
            words = WORDS.get((name, value) if not isinstance(value, list) else (name, 0))
            yield Perturbation(words or f"{plain} in place of {shown}", _with({name: value}))
        if name == "other" and type(now) in (int, float):
            for value in (0, 1):
                if value != now and step.packet in COMPARISONS:
                    yield Perturbation(f"with {value} in place of {now:g}", _with({name: value}))


def _with(changed: dict[str, Any]) -> Callable[[Call], Any]:
    return lambda call: call.run(**changed)


# ---- Operators in place of others ---------------------------------------------------------------


def _similar(step: Step) -> Iterator[Perturbation]:
    if step.packet in ("_softmax", "_log_softmax", "_safe_softmax"):
        for name, of in SOFTMAXES.items():
            yield Perturbation(f"replaced by {name}", partial(_along, of))
    if step.packet in ("argmax", "argmin") and step.constants.get("dim") is not None:
        yield Perturbation("with the last of equal values taken", _last_of_equal)
    if step.packet == "where" and step.shapes.get("self") is not None:
        yield Perturbation("with its two branches exchanged", partial(_exchanged, "self", "other"))
    if step.packet in REDUCING:
        for name, reduction in REDUCTIONS.items():
            yield Perturbation(f"replaced by {name}", partial(_reduced, reduction))


def _self(call: Call) -> torch.Tensor:
    tensor: torch.Tensor = call.arguments["self"]
    return tensor


def _argument(name: str, call: Call) -> Any:
    return call.arguments[name]


def _along(of: Callable[[torch.Tensor, int], torch.Tensor], call: Call) -> torch.Tensor:
    return of(_self(call), call.arguments["dim"])


def _of_one(of: Unary, call: Call) -> torch.Tensor:
    return of(_self(call))


def _last_of_equal(call: Call) -> torch.Tensor:
    x, dim = _self(call), call.arguments["dim"]
    result: torch.Tensor = call.run(self=x.flip(dim))
    last: torch.Tensor = x.shape[dim] - 1 - result
    return last


def _exchanged(one: str, other: str, call: Call) -> Any:
    return call.run(**{one: call.arguments[other], other: call.arguments[one]})


def _dims_of(call_constants: dict[str, Any], rank: int) -> tuple[int, ...]:
    dim = call_constants.get("dim")
    if dim is None or dim == []:
        return tuple(range(rank))
    return tuple(one % rank for one in ([dim] if isinstance(dim, int) else dim))


def _reduced(of: Reduction, call: Call) -> torch.Tensor:
    x = _self(call)
    dims = _dims_of(call.arguments, x.dim())
    result = of(x, dims)
    return result if call.arguments.get("keepdim") else result.squeeze(dims)


def _any_operator(step: Step) -> Iterator[Perturbation]:
    """Any other operator with the same number of operands."""
    if step.packet in COMPARISONS:
        table: dict[str, Binary] = COMPARISONS
    elif step.packet in BINARY or step.packet == "rsub" or step.packet == "pow":
        table = BINARY
    else:
        table = {}
    second = "exponent" if step.packet == "pow" else "other"
    for name, of in table.items():
        if name != step.packet:
            words = "with its operands swapped" if name.startswith(step.packet + " with") else ""
            yield Perturbation(
                words or f"replaced by {name}",
                partial(_paired, of, second),
            )
    is_unary = len(step.shapes) == 1 and step.result == next(iter(step.shapes.values()))
    if is_unary and (step.packet in UNARY or step.packet in ALSO_UNARY):
        for name, of_one in UNARY.items():
            if name != step.packet:
                yield Perturbation(f"replaced by {name}", partial(_of_one, of_one))


def _paired(of: Binary, second: str, call: Call) -> torch.Tensor:
    x, y = call.arguments["self"], call.arguments[second]
    tensor = x if isinstance(x, torch.Tensor) else y
    pair = [
        one if isinstance(one, torch.Tensor) else torch.full_like(tensor, one) for one in (x, y)
    ]
    return of(*pair)


# ---- Parts of operands --------------------------------------------------------------------------


def _parts(step: Step) -> Iterator[Perturbation]:
    """Only a part of the axis over which a reduction or a product runs."""
    shape = step.shapes.get("self")
    if step.packet in PRODUCTS:
        yield from _product_parts(step, *PRODUCTS[step.packet])
    if step.packet not in REDUCING or not shape:
        return
    axis = _dims_of(step.constants, len(shape))[-1]
    for words, count in PARTS:
        size = count(shape[axis])
        if 0 < size < shape[axis]:
            yield Perturbation(words, partial(_part, axis, size))


def _product_parts(step: Step, one: str, other: str) -> Iterator[Perturbation]:
    depth = step.shapes[one][-1]
    for words, count in PARTS:
        size = count(depth)
        if 0 < size < depth:
            yield Perturbation(words, partial(_product_part, one, other, size))


def _product_part(one: str, other: str, size: int, call: Call) -> Any:
    left, right = call.arguments[one], call.arguments[other]
    return call.run(**{one: left.narrow(-1, 0, size), other: right.narrow(-2, 0, size)})


def _part(axis: int, size: int, call: Call) -> torch.Tensor:
    x = _self(call)
    result: torch.Tensor = call.run(self=x.narrow(axis, 0, size))
    # Kernels divide by the whole size.
    return result * (size / x.shape[axis]) if call.packet == "mean" else result


def _operands(step: Step) -> Iterator[Perturbation]:
    """An operand of which only the first elements are read."""
    for number, (name, shape) in enumerate(step.shapes.items()):
        which = "" if len(step.shapes) == 1 else f" {('first', 'second', 'third')[min(number, 2)]}"
        for axis in range(min(2, len(shape))):
            if shape[axis] > 1 and len(shape) > 1:
                yield Perturbation(
                    f"with only place 0 of axis {axis} of its{which} operand read",
                    partial(_first, name, axis),
                )


def _first(name: str, axis: int, call: Call) -> Any:
    x = call.arguments[name]
    return call.run(**{name: x.narrow(axis, 0, 1).expand(x.shape)})
