# SPDX-License-Identifier: Apache-2.0
"""A function of each element, written with PyTorch's operators, as one CUDA kernel.

A distribution takes a dozen operators in double precision, each of which reads and writes all of a
tensor: 0.1 s for 8 GB. The function is called once with a symbol in place of a tensor, and its
operations become the text of a kernel, which reads and writes each element once. NVRTC compiles it
in about 50 ms; torch.cuda.jiterator takes 1.6 s, most of it for its headers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

ELEMENTS_MIN = 1 << 24  # A kernel is compiled once in a process.
_TYPES = {torch.float32: "float", torch.float64: "double"}
_BLOCKS, _THREADS = 4096, 256
_KERNEL = """
__global__ void changed(const TYPE* from, TYPE* to, double count) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    const double x = from[i];
    to[i] = (TYPE)(VALUE);
  }
}
"""


def mapped(flat: torch.Tensor, function: Callable[[Any], Any]) -> torch.Tensor | None:
    """Applies `function` to each element in double precision; None if this module does not support
    it. REQUIRES: `flat` is contiguous.
    """
    if not flat.is_cuda or flat.numel() < ELEMENTS_MIN or flat.dtype not in _TYPES:
        return None
    kernel = _kernel(_TYPES[flat.dtype], text_of(function))
    if kernel is None:
        return None
    found = torch.empty_like(flat)
    # The launcher's integers have 32 bits; a double can represent any number of elements.
    kernel((_BLOCKS, 1, 1), (_THREADS, 1, 1), [flat, found, float(flat.numel())])
    return found


def text_of(function: Callable[[Any], Any]) -> str:
    """The C++ expression of the function's result for a double `x`. Raises TypeError if the
    function uses an operation that Symbol lacks.
    """
    return _text(function(Symbol("x")))


@functools.lru_cache(maxsize=64)
def _kernel(type_name: str, value: str) -> Any:
    """PyTorch's launcher of the kernel; None if there is no run-time compiler."""
    text = _KERNEL.replace("TYPE", type_name).replace("VALUE", value)
    try:
        return torch.cuda._compile_kernel(text, "changed")
    except (AttributeError, RuntimeError, OSError):
        return None


class Symbol:
    """A value in double precision, as a C++ expression."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Any) -> Symbol:
        return Symbol(f"({self.text} + {_text(other)})")

    def __sub__(self, other: Any) -> Symbol:
        return Symbol(f"({self.text} - {_text(other)})")

    def __rsub__(self, other: Any) -> Symbol:
        return Symbol(f"({_text(other)} - {self.text})")

    def __mul__(self, other: Any) -> Symbol:
        return Symbol(f"({self.text} * {_text(other)})")

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Symbol:
        return Symbol(f"(-{self.text})")

    def __lt__(self, other: Any) -> Symbol:
        return Symbol(f"({self.text} < {_text(other)})")

    def abs(self) -> Symbol:
        return Symbol(f"fabs({self.text})")

    def round(self) -> Symbol:
        return Symbol(f"rint({self.text})")

    def remainder(self, other: float) -> Symbol:
        """The remainder of a number that is not negative, as distributions use it."""
        return Symbol(f"fmod({self.text}, {_text(other)})")

    def clamp(self, min: float | None = None, max: float | None = None) -> Symbol:
        """A NaN stays a NaN."""
        result = self.text
        if min is not None:
            result = f"({result} < {_text(min)} ? {_text(min)} : {result})"
        if max is not None:
            result = f"({result} > {_text(max)} ? {_text(max)} : {result})"
        return Symbol(result)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.where and len(args) == 3:
            condition, this, other = map(_text, args)
            return cls(f"({condition} ? {this} : {other})")
        if func is torch.exp:
            return cls(f"exp({_text(args[0])})")
        raise TypeError(f"a fused function has no {func}")


def _text(value: Any) -> str:
    if isinstance(value, Symbol):
        return value.text
    number = float(value)
    if number != number:
        return "(0.0 / 0.0)"
    if number in (float("inf"), float("-inf")):
        return f"({'-' if number < 0 else ''}1.0 / 0.0)"
    return f"({number!r})"
