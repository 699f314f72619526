# SPDX-License-Identifier: Apache-2.0
"""Common mistakes in operators: tables of functions and of arguments (perturbations.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Unary = Callable[[torch.Tensor], torch.Tensor]
Binary = Callable[[Any, Any], torch.Tensor]
Reduction = Callable[[torch.Tensor, tuple[int, ...]], torch.Tensor]  # Keeps the reduced axes.


def _prod(x: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
    for dim in dims:
        x = x.prod(dim, keepdim=True)
    return x


def _named(module: Any, functions: str) -> dict[str, Any]:
    """The module's functions of these names, in their order."""
    return {name: getattr(module, name) for name in functions.split()}


UNARY: dict[str, Unary] = {
    "relu": torch.relu,
    "leaky_relu": F.leaky_relu,
    "leaky_relu with slope 0.1": lambda x: F.leaky_relu(x, 0.1),
    "gelu": F.gelu,
    "gelu with tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    **_named(F, "softplus softsign elu selu mish hardtanh hardswish hardsigmoid relu6 logsigmoid"),
    **_named(F, "tanhshrink softshrink hardshrink"),
    **_named(
        torch, "exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal abs neg sign square"
    ),
    "cube": lambda x: x * x * x,
    **_named(torch, "sin cos tan sinh cosh atan asinh erf erfc floor ceil round trunc frac"),
    "squared relu": lambda x: x.relu().square(),
    "log cosh": lambda x: x.abs() + torch.log1p(torch.exp(-2 * x.abs())) - 0.6931471805599453,
    "x * sigmoid(1.702 x)": lambda x: x * torch.sigmoid(1.702 * x),
    "exp(-x * x)": lambda x: torch.exp(-x * x),
    "exp(-x)": lambda x: torch.exp(-x),
    "sigmoid(-x)": lambda x: torch.sigmoid(-x),
    "1 - x": lambda x: 1 - x,
    "double": lambda x: 2 * x,
    "half of it": lambda x: 0.5 * x,
}
BINARY: dict[str, Binary] = {
    **_named(torch, "add sub mul div"),
    "sub with its operands swapped": lambda x, y: torch.sub(y, x),
    "div with its operands swapped": lambda x, y: torch.div(y, x),
    **_named(torch, "maximum minimum pow"),
    "the squared difference": lambda x, y: (x - y) * (x - y),
    "the absolute difference": lambda x, y: (x - y).abs(),
    "the mean of both": lambda x, y: (x + y) / 2,
    **_named(torch, "fmod remainder atan2 hypot bitwise_and bitwise_or bitwise_xor"),
}
COMPARISONS: dict[str, Binary] = _named(torch, "gt ge lt le eq ne")
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
REDUCING = frozenset(
    "sum mean amax amin max min prod logsumexp linalg_vector_norm var std nansum".split()
)
PRODUCTS = {"mm": ("self", "mat2"), "bmm": ("self", "mat2"), "addmm": ("mat1", "mat2")}
# Unary operators that the table has under another name.
ALSO_UNARY = frozenset(
    "pow hardtanh log_sigmoid_forward rsub clamp clamp_min clamp_max celu threshold".split()
)
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
}
WORDS = {  # Descriptions beyond a name and a number.
    ("training", False): "in eval mode",
    ("training", True): "in train mode",
    ("correction", 0): "with the biased variance in place of the unbiased",
    ("correction", 1): "with the unbiased variance in place of the biased",
    ("approximate", "none"): "in its exact form in place of the approximation by tanh",
    ("approximate", "tanh"): "in its approximation by tanh in place of the exact form",
    ("reduction", 1): "as a mean in place of a sum",
    ("reduction", 2): "as a sum in place of a mean",
    ("diagonal", 0): "with the main diagonal",
}
# The parts of an axis that wrong loops and blocks omit: a description, and how many of n indices
# are read.
PARTS: tuple[tuple[str, Callable[[int], int]], ...] = (
    ("without the last place of the axis", lambda n: n - 1),
    ("over only the first 32 places of the axis", lambda n: 32),
    ("over only the first 128 places of the axis", lambda n: 128),
    ("over only the first 256 places of the axis", lambda n: 256),
    ("over only the first 1024 places of the axis", lambda n: 1024),
    ("without the places past the last multiple of 4", lambda n: n // 4 * 4),
    ("without the places past the last multiple of 32", lambda n: n // 32 * 32),
)
SOFTMAXES: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "softmin": lambda x, dim: (-x).softmax(dim),
    "exp(x - max)": lambda x, dim: (x - x.amax(dim, keepdim=True)).exp(),
    "x - max": lambda x, dim: x - x.amax(dim, keepdim=True),
    "x over its sum": lambda x, dim: x / x.sum(dim, keepdim=True),
    "exp": lambda x, dim: x.exp(),
    "sigmoid": lambda x, dim: x.sigmoid(),
}
