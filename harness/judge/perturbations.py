# SPDX-License-Identifier: Apache-2.0
"""The table of perturbations: what candidates compute in place of one operator of the reference.

A perturbation is words ("replaced by sum") and a function from the call of the operator to what
stands in its place. `perturbations_of` yields those that fit a step, the likeliest kinds first:
arguments that are left out or changed, near operators, parts of operands, any operator of the same
form. Which one a candidate's output equals is found by running the reference with each
(diagnosis.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from harness.judge.trace import Call, Step

Unary = Callable[[torch.Tensor], torch.Tensor]
Binary = Callable[[Any, Any], torch.Tensor]
Reduction = Callable[[torch.Tensor, tuple[int, ...]], torch.Tensor]  # That keeps its axes.

UNARY: dict[str, Unary] = {
    "relu": torch.relu,
    "leaky_relu": F.leaky_relu,
    "gelu": F.gelu,
    "gelu with tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": F.softplus,
    "softsign": F.softsign,
    "elu": F.elu,
    "selu": F.selu,
    "mish": F.mish,
    "hardtanh": F.hardtanh,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "relu6": F.relu6,
    "logsigmoid": F.logsigmoid,
    "tanhshrink": F.tanhshrink,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "log10": torch.log10,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "abs": torch.abs,
    "neg": torch.neg,
    "sign": torch.sign,
    "square": torch.square,
    "cube": lambda x: x * x * x,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "atan": torch.atan,
    "asinh": torch.asinh,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": torch.trunc,
    "frac": torch.frac,
    "the negated exp": lambda x: torch.exp(-x),
    "1 - x": lambda x: 1 - x,
    "double": lambda x: 2 * x,
    "half of it": lambda x: 0.5 * x,
}
BINARY: dict[str, Binary] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "sub with its operands swapped": lambda x, y: torch.sub(y, x),
    "div with its operands swapped": lambda x, y: torch.div(y, x),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "pow": torch.pow,
    "the squared difference": lambda x, y: (x - y) * (x - y),
    "the absolute difference": lambda x, y: (x - y).abs(),
    "the mean of both": lambda x, y: (x + y) / 2,
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
}
COMPARISONS: dict[str, Binary] = {
    name: getattr(torch, name) for name in ("gt", "ge", "lt", "le", "eq", "ne")
}
REDUCTIONS: dict[str, Reduction] = {
    "sum": lambda x, dims: x.sum(dims, keepdim=True),
    "mean": lambda x, dims: x.mean(dims, keepdim=True),
    "max": lambda x, dims: x.amax(dims, keepdim=True),
    "min": lambda x, dims: x.amin(dims, keepdim=True),
    "prod": lambda x, dims: _prod(x, dims),
    "logsumexp": lambda x, dims: x.logsumexp(dims, keepdim=True),
    "norm": lambda x, dims: x.square().sum(dims, keepdim=True).sqrt(),
    "sum of squares": lambda x, dims: x.square().sum(dims, keepdim=True),
    "mean of squares": lambda x, dims: x.square().mean(dims, keepdim=True),
    "root of the mean of squares": lambda x, dims: x.square().mean(dims, keepdim=True).sqrt(),
    "sum of absolute values": lambda x, dims: x.abs().sum(dims, keepdim=True),
    "mean of absolute values": lambda x, dims: x.abs().mean(dims, keepdim=True),
    "largest absolute value": lambda x, dims: x.abs().amax(dims, keepdim=True),
    "biased variance": lambda x, dims: x.var(dims, correction=0, keepdim=True),
    "unbiased variance": lambda x, dims: x.var(dims, correction=1, keepdim=True),
    "biased standard deviation": lambda x, dims: x.std(dims, correction=0, keepdim=True),
    "unbiased standard deviation": lambda x, dims: x.std(dims, correction=1, keepdim=True),
    "max - min": lambda x, dims: x.amax(dims, keepdim=True) - x.amin(dims, keepdim=True),
    "sum of exp": lambda x, dims: x.exp().sum(dims, keepdim=True),
}
# Operators of one form: what each may be misread as, called with the arguments of the first.
SIMILAR: dict[str, tuple[str, ...]] = {
    "argmax": ("argmin",),
    "argmin": ("argmax",),
    "cumsum": ("cumprod",),
    "cumprod": ("cumsum",),
    "mse_loss": ("l1_loss", "smooth_l1_loss", "huber_loss"),
    "l1_loss": ("mse_loss", "smooth_l1_loss", "huber_loss"),
    "smooth_l1_loss": ("mse_loss", "l1_loss", "huber_loss"),
    "huber_loss": ("mse_loss", "l1_loss", "smooth_l1_loss"),
    "tril": ("triu",),
    "triu": ("tril",),
}
_REDUCING = frozenset(
    "sum mean amax amin max min prod logsumexp linalg_vector_norm var std nansum".split()
)
_UNARY_OF = {  # Operators of one tensor under names that the table has differently.
    "pow": "pow",
    "hardtanh": "hardtanh",
    "log_sigmoid_forward": "logsigmoid",
    "rsub": "sub",
    "clamp": "clamp",
    "clamp_min": "clamp",
    "clamp_max": "clamp",
    "celu": "celu",
    "threshold": "threshold",
}
# Values that an argument of this name may have in the candidate.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "eps": (0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-3),
    "correction": (0, 1),
    "negative_slope": (0.01, 0.1, 0.2),
    "approximate": ("none", "tanh"),
    "reduction": (1, 2),
    "training": (False, True),
    "largest": (False, True),
    "descending": (False, True),
    "is_causal": (False, True),
    "count_include_pad": (False, True),
    "ceil_mode": (False, True),
    "ord": (1, 2),
    "diagonal": (-1, 0, 1),
    "exponent": (0.5, 2, 3),
    "alpha": (1,),
    "beta": (0, 1),
    "dilation": ([1, 1],),
    "transposed": (False, True),
}
WORDS = {  # Where a name and a number say less.
    ("training", False): "in eval mode",
    ("training", True): "in train mode",
    ("correction", 0): "with the biased variance in place of the unbiased",
    ("correction", 1): "with the unbiased variance in place of the biased",
    ("approximate", "none"): "in its exact form in place of the approximation by tanh",
    ("approximate", "tanh"): "in its approximation by tanh in place of the exact form",
    ("reduction", 1): "as a mean in place of a sum",
    ("reduction", 2): "as a sum in place of a mean",
    ("beta", 0): "without its bias",
    ("diagonal", 0): "with the main diagonal",
}
# The parts of an axis that loops and blocks leave out: words, and how many of n places are read.
PARTS: tuple[tuple[str, Callable[[int], int]], ...] = (
    ("without the last place of the axis", lambda n: n - 1),
    ("over only the first 32 places of the axis", lambda n: 32),
    ("over only the first 64 places of the axis", lambda n: 64),
    ("over only the first 128 places of the axis", lambda n: 128),
    ("over only the first 256 places of the axis", lambda n: 256),
    ("over only the first 512 places of the axis", lambda n: 512),
    ("over only the first 1024 places of the axis", lambda n: 1024),
    ("without the places past the last multiple of 4", lambda n: n // 4 * 4),
    ("without the places past the last multiple of 8", lambda n: n // 8 * 8),
    ("without the places past the last multiple of 16", lambda n: n // 16 * 16),
    ("without the places past the last multiple of 32", lambda n: n // 32 * 32),
    ("over only the first half of the axis", lambda n: n // 2),
    ("over only the first place of the axis", lambda n: 1),
)


@dataclass(frozen=True)
class Perturbation:
    words: str
    change: Callable[[Call], Any]


def perturbations_of(step: Step) -> Iterator[Perturbation]:
    """All that fit a step, the likeliest kinds first."""
    for make in (_left_out, _arguments, _similar, _axes, _parts, _operands, _any_operator):
        yield from make(step)


def view_perturbations(step: Step) -> Iterator[Perturbation]:
    """A view whose strides the candidate ignores."""
    yield Perturbation("read as if its result were contiguous", _as_contiguous)


def _as_contiguous(call: Call) -> torch.Tensor:
    view: torch.Tensor = call.run()
    if view.is_contiguous():
        raise ValueError("nothing changes")
    dense = torch.empty(view.shape, device="meta").stride()
    return view.as_strided(view.shape, dense, view.storage_offset())


def _prod(x: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
    for dim in dims:
        x = x.prod(dim, keepdim=True)
    return x


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
        for value in ARGUMENTS.get(name, ()):
            if value == now or type(now) is bool and type(value) is not bool or now is None:
                continue
            shown = "nothing" if now is None else f"{now:g}" if isinstance(now, float) else str(now)
            plain = f"with {name} {value:g}" if isinstance(value, float) else f"with {name} {value}"
            words = WORDS.get((name, value) if not isinstance(value, list) else (name, 0))
            yield Perturbation(words or f"{plain} in place of {shown}", _with({name: value}))
        if name in ("padding", "stride", "dilation") and isinstance(now, list):
            for value in (0, 1, 2):
                other = [value] * len(now)
                if other != now and (value > 0 or name == "padding"):
                    words = f"with {name} {value} in place of {now[0]}"
                    yield Perturbation(words, _with({name: other}))


def _with(changed: dict[str, Any]) -> Callable[[Call], Any]:
    return lambda call: call.run(**changed)


# ---- Operators in place of others ---------------------------------------------------------------


def _similar(step: Step) -> Iterator[Perturbation]:
    for name in SIMILAR.get(step.packet, ()):
        yield Perturbation(f"replaced by {name}", partial(_named, name))
    if step.packet in ("_softmax", "_log_softmax", "_safe_softmax"):
        for name, of in _SOFTMAXES.items():
            yield Perturbation(f"replaced by {name}", partial(_along, of))
    if step.packet == "cumsum":
        yield Perturbation("from the other end", _reversed)
        yield Perturbation("without the element itself", lambda call: call.run() - _self(call))
    if step.packet == "max_pool2d_with_indices":
        yield Perturbation(
            "replaced by avg_pool2d", lambda call: _pool(call, torch.ops.aten.avg_pool2d)
        )
    if step.packet == "avg_pool2d":
        yield Perturbation(
            "replaced by max_pool2d", lambda call: _pool(call, torch.ops.aten.max_pool2d)
        )
    if step.packet in _REDUCING:
        for name, reduction in REDUCTIONS.items():
            yield Perturbation(f"replaced by {name}", partial(_reduced, reduction))


_SOFTMAXES: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "softmin": lambda x, dim: (-x).softmax(dim),
    "exp(x - max)": lambda x, dim: (x - x.amax(dim, keepdim=True)).exp(),
    "x - max": lambda x, dim: x - x.amax(dim, keepdim=True),
    "x over its sum": lambda x, dim: x / x.sum(dim, keepdim=True),
    "exp": lambda x, dim: x.exp(),
    "sigmoid": lambda x, dim: x.sigmoid(),
}


def _self(call: Call) -> torch.Tensor:
    tensor: torch.Tensor = call.arguments["self"]
    return tensor


def _argument(name: str, call: Call) -> Any:
    return call.arguments[name]


def _along(of: Callable[[torch.Tensor, int], torch.Tensor], call: Call) -> torch.Tensor:
    return of(_self(call), call.arguments["dim"])


def _of_one(of: Unary, call: Call) -> torch.Tensor:
    return of(_self(call))


def _named(name: str, call: Call) -> Any:
    known = {one.name for one in getattr(torch.ops.aten, name).default._schema.arguments}
    return getattr(torch.ops.aten, name)(**{k: v for k, v in call.arguments.items() if k in known})


def _reversed(call: Call) -> torch.Tensor:
    dim = call.arguments["dim"]
    result: torch.Tensor = call.run(self=_self(call).flip(dim))
    return result.flip(dim)


def _pool(call: Call, other: Any) -> Any:
    given = call.arguments
    return other(given["self"], given["kernel_size"], given["stride"], given["padding"])


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
    """Any other operator of as many operands."""
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
    if is_unary and (step.packet in UNARY or step.packet in _UNARY_OF):
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


# ---- Axes and operands --------------------------------------------------------------------------


def _axes(step: Step) -> Iterator[Perturbation]:
    """Another axis, or all of them."""
    shape = step.shapes.get("self", step.shapes.get("input"))
    if "dim" not in step.constants or not shape or len(shape) < 2:
        return
    now = step.constants["dim"]
    dims = _dims_of(step.constants, len(shape))
    is_list = isinstance(now, list) or now is None
    others: list[tuple[int, ...]] = [(axis,) for axis in range(len(shape)) if (axis,) != dims]
    if is_list and len(dims) < len(shape):
        others += [(*dims, axis) for axis in range(len(shape)) if axis not in dims]
    shown = _axis_words(dims)
    for other in others:
        changed = list(other) if is_list else other[0]
        words = f"over {_axis_words(other)} in place of {shown}"
        yield Perturbation(words, _with({"dim": changed}))


def _axis_words(dims: tuple[int, ...]) -> str:
    return ("axis " if len(dims) == 1 else "axes ") + " and ".join(map(str, dims))


def _parts(step: Step) -> Iterator[Perturbation]:
    """A part of the axis that a reduction runs over."""
    shape = step.shapes.get("self")
    if step.packet not in _REDUCING or not shape:
        return
    axis = _dims_of(step.constants, len(shape))[-1]
    for words, count in PARTS:
        size = count(shape[axis])
        if 0 < size < shape[axis]:
            yield Perturbation(words, partial(_part, axis, size))
    if step.packet == "mean":
        yield Perturbation("divided by another axis's size", lambda call: _over_another(call, axis))


def _part(axis: int, size: int, call: Call) -> torch.Tensor:
    x = _self(call)
    result: torch.Tensor = call.run(self=x.narrow(axis, 0, size))
    # Kernels divide by the whole size.
    return result * (size / x.shape[axis]) if call.packet == "mean" else result


def _over_another(call: Call, axis: int) -> torch.Tensor:
    x = _self(call)
    others = [size for dim, size in enumerate(x.shape) if dim != axis]
    result: torch.Tensor = call.run()
    return result * float(x.shape[axis] / others[-1])


def _operands(step: Step) -> Iterator[Perturbation]:
    """An operand that is transposed, or of which only the first places are read."""
    for number, (name, shape) in enumerate(step.shapes.items()):
        which = "" if len(step.shapes) == 1 else f" {('first', 'second', 'third')[min(number, 2)]}"
        if len(shape) >= 2 and shape[-1] == shape[-2]:
            yield Perturbation(
                f"with its{which} operand transposed",
                partial(_transposed, name),
            )
        for axis in range(min(2, len(shape))):
            if shape[axis] > 1 and len(shape) > 1:
                yield Perturbation(
                    f"with only place 0 of axis {axis} of its{which} operand read",
                    partial(_first, name, axis),
                )


def _transposed(name: str, call: Call) -> Any:
    return call.run(**{name: call.arguments[name].transpose(-1, -2)})


def _first(name: str, axis: int, call: Call) -> Any:
    x = call.arguments[name]
    return call.run(**{name: x.narrow(axis, 0, 1).expand(x.shape)})
