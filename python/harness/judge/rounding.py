# SPDX-License-Identifier: Apache-2.0
"""The results of a program whose fp32 sums are taken in another order.

A sum of n terms, taken one after the other, rounds n times; PyTorch adds in blocks and rounds much
less, so its difference from double precision says little about an honest kernel's error. Under this
mode a program runs once more, each of its sums with the rounding of sequential order, which then
propagates through all later operators, such as an exponential or a difference of large numbers:

- sums, means, moments, softmax and scans: the rounding of each step, from the terms themselves.
  It grows like n if terms repeat, otherwise like sqrt(n);
- products of matrices and convolutions, whose terms are not stored: by the size that a random walk
  of n roundings has, which the sum and the sum of the squared terms give, with a random sign.

Variances have the error of E[x^2] - E[x]^2, with which one-pass kernels compute them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

UNIT = 2.0**-24  # The largest relative change of a number that is rounded to fp32.
# The relative change of a factor that is rounded to TF32, or cut off to it.
TF32_UNIT = 2.0**-11
TERMS_MAX = 1 << 27  # The most terms of an operator whose steps are followed.
_aten = torch.ops.aten


class SequentialSumMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums with the rounding of sequential order; a seed determines the random signs."""

    def __init__(self, seed: int, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.has_sums = False
        self.has_walks = False
        self._generator = torch.Generator(device).manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rule = _RULES.get(func._overloadpacket)
        floating = [one for one in args if isinstance(one, torch.Tensor) and is_inexact(one)]
        if rule is None or any(one.dtype != torch.float32 for one in floating):
            return func(*args, **(kwargs or {}))
        self.has_sums = True
        return rule(self, func, *args, **(kwargs or {}))

    def walk(self, total: torch.Tensor, root: torch.Tensor, num_terms: int) -> torch.Tensor:
        """A sum after a random walk of its roundings; `root` is the root of the sum of squared
        terms.
        """
        size = (total.abs() + root.nan_to_num(posinf=0.0)) * (UNIT / 2 * math.sqrt(num_terms))
        return total + self._signed(size)

    def product(self, total: torch.Tensor, root: torch.Tensor, num_terms: int) -> torch.Tensor:
        """A product of matrices; as `walk`."""
        return self.walk(total, root, num_terms)

    def _signed(self, size: torch.Tensor) -> torch.Tensor:
        self.has_walks = True
        unit = torch.rand(size.shape, generator=self._generator, device=size.device)
        return torch.where(unit < 0.5, size, -size)

    def sum(self, x: torch.Tensor, dims: Sequence[int] | None, keepdim: bool) -> torch.Tensor:
        dims = [dim % max(1, x.dim()) for dim in dims or range(x.dim())]
        exact = x.sum(dims, keepdim=True) if x.dim() else x
        if 0 < x.numel() <= TERMS_MAX and x.dim():
            others = [dim for dim in range(x.dim()) if dim not in dims]
            rows = x.permute(*others, *dims).reshape(*(x.shape[dim] for dim in others), -1)
            exact = exact + _roundings(rows, -1).sum(-1).reshape(exact.shape).float()
        else:
            exact = self.walk(exact, exact, x.numel() // max(1, exact.numel()))
        return exact if keepdim else exact.squeeze(dims) if x.dim() else exact

    def mean(self, x: torch.Tensor, dims: Sequence[int] | None, keepdim: bool) -> torch.Tensor:
        total = self.sum(x, dims, keepdim)
        return total * (total.numel() / max(1, x.numel()))

    def log_of(self, total: torch.Tensor, top: torch.Tensor) -> torch.Tensor:
        """log(total * exp(top)). The total is rounded before its logarithm, and the result after
        it: both matter for a difference that nearly cancels.
        """
        size = (1 + top.abs().nan_to_num(posinf=0.0)) * UNIT
        return total.log() + top + self._signed(size)

    def moments(
        self, x: torch.Tensor, dims: Sequence[int] | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance, the reduced dimensions kept."""
        mean = self.mean(x, dims, True)
        variance = self.mean((x - mean).square(), dims, True)
        num_roundings = x.numel() // max(1, mean.numel()) - 1
        size = (mean.square() + variance) * (UNIT * math.sqrt(max(0, num_roundings)))
        return mean, (variance + self._signed(size)).clamp(min=0)


class Tf32Mode(SequentialSumMode):
    """Also rounds both factors of a product to TF32, as a random walk of its terms, or truncates
    them, which makes all terms smaller.
    """

    has_products = False

    def product(self, total: torch.Tensor, root: torch.Tensor, num_terms: int) -> torch.Tensor:
        self.has_products = True
        size = root.nan_to_num(posinf=0.0) * TF32_UNIT + total.abs() * (TF32_UNIT / 2)
        return super().product(total + self._signed(size), root, num_terms)


def is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _roundings(terms: torch.Tensor, dim: int) -> torch.Tensor:
    """The rounding error of each step of a sum along `dim`, in double precision."""
    wide = terms.double()
    before = (wide.cumsum(dim) - wide).float()
    exact = before.double() + wide
    # Beyond fp32's range the rounding is undefined.
    steps: torch.Tensor = exact.float().double() - exact
    return steps.nan_to_num(0.0, 0.0, 0.0)


# ---- Operators ----------------------------------------------------------------------------------


def _product(mode: SequentialSumMode, func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    result: torch.Tensor = func(*args, **kwargs)
    squares = [one * one if isinstance(one, torch.Tensor) else one for one in args]
    factors = {name: value * value for name, value in kwargs.items() if name in ("alpha", "beta")}
    root = func(*squares, **{**kwargs, **factors}).sqrt()
    return mode.product(result, root, _num_terms(func, args))


def _num_terms(func: Any, args: Sequence[Any]) -> int:
    if func._overloadpacket is _aten.convolution:
        weight, is_transposed, groups = args[1], args[6], args[8]
        outputs = weight.shape[1] * groups if is_transposed else weight.shape[0]
        return int(weight.numel() // max(1, outputs))
    matrices = [one for one in args if isinstance(one, torch.Tensor)]
    return int(matrices[-2].shape[-1])


def _sum(
    mode: SequentialSumMode, _: Any, x: Any, dims: Any = None, keepdim: bool = False, **__: Any
) -> torch.Tensor:
    return mode.sum(x, dims, keepdim)


def _mean(
    mode: SequentialSumMode, _: Any, x: Any, dims: Any = None, keepdim: bool = False, **__: Any
) -> torch.Tensor:
    return mode.mean(x, dims, keepdim)


def _cumsum(mode: SequentialSumMode, func: Any, x: Any, dim: int, **kwargs: Any) -> torch.Tensor:
    result: torch.Tensor = func(x, dim, **kwargs)
    if x.dim() == 0 or x.numel() > TERMS_MAX:
        return result
    return result + _roundings(x, dim).cumsum(dim).float()


def _softmax(mode: SequentialSumMode, func: Any, x: Any, dim: int, *_: Any) -> torch.Tensor:
    top = x.amax(dim, keepdim=True)
    shifted = x - top
    total = mode.sum(shifted.exp(), [dim], True)
    is_log = func._overloadpacket is _aten._log_softmax
    result: torch.Tensor = x - mode.log_of(total, top) if is_log else shifted.exp() / total
    return result


def _logsumexp(
    mode: SequentialSumMode, _: Any, x: Any, dims: Any, keepdim: bool = False
) -> torch.Tensor:
    top = x.amax(dims, keepdim=True)
    top = torch.where(top.isfinite(), top, 0.0)
    total = mode.log_of(mode.sum((x - top).exp(), dims, True), top)
    return total if keepdim else total.squeeze(dims)


def _variance(
    mode: SequentialSumMode,
    func: Any,
    x: Any,
    dims: Any = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Any:
    mean, variance = mode.moments(x, dims)
    num = x.numel() // max(1, mean.numel())
    variance = variance * (num / max(num - (1 if correction is None else correction), 1e-30))
    name = func._overloadpacket.__name__
    spread = variance.sqrt() if name.startswith("std") else variance
    if not keepdim:
        dims = list(range(x.dim())) if dims is None else dims
        spread, mean = spread.squeeze(dims), mean.squeeze(dims)
    return (spread, mean) if name.endswith("_mean") else spread


def _vector_norm(
    mode: SequentialSumMode,
    func: Any,
    x: Any,
    order: float = 2,
    dims: Any = None,
    keepdim: bool = False,
    **kwargs: Any,
) -> torch.Tensor:
    if order != 2:
        other: torch.Tensor = func(x, order, dims, keepdim, **kwargs)
        return other
    return mode.sum(x * x, dims, keepdim).sqrt()


def _layer_norm(
    mode: SequentialSumMode, func: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[torch.Tensor, ...]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    mean, variance = mode.moments(x, dims)
    scale = (variance + eps).rsqrt()
    return _affine((x - mean) * scale, weight, bias, list(shape)), mean, scale


def _group_norm(
    mode: SequentialSumMode,
    func: Any,
    x: Any,
    weight: Any,
    bias: Any,
    batch: int,
    channels: int,
    area: int,
    groups: int,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    rows = x.reshape(batch, groups, -1)
    mean, variance = mode.moments(rows, [2])
    scale = (variance + eps).rsqrt()
    normal = ((rows - mean) * scale).reshape(x.shape)
    shape = [-1] + [1] * (x.dim() - 2)
    return _affine(normal, weight, bias, shape), mean.squeeze(2), scale.squeeze(2)


def _batch_norm(
    mode: SequentialSumMode,
    func: Any,
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_variance: Any,
    training: bool,
    *rest: Any,
) -> Any:
    made = func(x, weight, bias, running_mean, running_variance, training, *rest)
    if not training:
        return made
    mean, variance = mode.moments(x, [dim for dim in range(x.dim()) if dim != 1])
    normal = (x - mean) * (variance + rest[1]).rsqrt()
    return (_affine(normal, weight, bias, [-1] + [1] * (x.dim() - 2)), *made[1:])


def _affine(x: torch.Tensor, weight: Any, bias: Any, shape: list[int]) -> torch.Tensor:
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


_RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(
        (
            _aten.mm,
            _aten.addmm,
            _aten.bmm,
            _aten.baddbmm,
            _aten.mv,
            _aten.addmv,
            _aten.dot,
            _aten.convolution,
        ),
        _product,
    ),
    **dict.fromkeys((_aten._softmax, _aten._log_softmax), _softmax),
    **dict.fromkeys((_aten.var, _aten.std, _aten.var_mean, _aten.std_mean), _variance),
    **dict.fromkeys((_aten.native_batch_norm, _aten.cudnn_batch_norm), _batch_norm),
    _aten.sum: _sum,
    _aten.mean: _mean,
    _aten.cumsum: _cumsum,
    _aten.logsumexp: _logsumexp,
    _aten.linalg_vector_norm: _vector_norm,
    _aten.native_layer_norm: _layer_norm,
    _aten.native_group_norm: _group_norm,
}
