# SPDX-License-Identifier: Apache-2.0
"""Draws large weights on the device.

One core draws about 50 million numbers per second, so a model with a layer of 16,384² would take 5
s each time it is made, in judge and candidate. While a model is constructed under `large_draws`, a
large tensor that names no device is made on the device, and a large draw by the default generator
comes from the device's generator, which counts (Philox): the same seed gives the same bits in every
process. Small tensors are made on the host, as PyTorch makes them.

A constructor that mixes both may fail, for example at a product of a large and a small tensor. It
is then run again with all tensors on the host, and gets the same numbers, which are drawn on the
device and copied.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

LARGE_MIN = 1 << 20  # Elements.
_HOST = torch.device("cpu")

_FACTORIES = {torch.empty, torch.zeros, torch.ones, torch.full}
_RANDOM_FACTORIES = {torch.rand, torch.randn}
_DRAWS_IN_PLACE = ("uniform_", "normal_")  # The methods with which PyTorch's initializers draw.


class _Generator:
    """The device's generator, seeded like the host's when it is first needed."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._made: torch.Generator | None = None
        self.was_used = False  # A large tensor was made or drawn.

    def get(self) -> torch.Generator:
        if self._made is None:
            seed = torch.default_generator.initial_seed()
            self._made = torch.Generator(self.device).manual_seed(seed)
        return self._made


class _LargeFactories(TorchFunctionMode):
    """Makes large tensors that name no device on the device. It intercepts PyTorch's functions at
    the call; at lower levels each tensor already has a device.
    """

    def __init__(self, generator: _Generator, stay_on_host: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._generator = generator
        self._stay_on_host = stay_on_host

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        is_random = func in _RANDOM_FACTORIES
        if not (is_random or func in _FACTORIES) or not _is_large(args, kwargs):
            return func(*args, **kwargs)
        self._generator.was_used = True
        there = {**kwargs, "device": self._generator.device}
        if is_random:
            made: torch.Tensor = func(*args, **{**there, "generator": self._generator.get()})
            return made.cpu() if self._stay_on_host else made
        made = func(*args, **(kwargs if self._stay_on_host else there))
        return made


def _is_large(args: Any, kwargs: Any) -> bool:
    """True for a new tensor that is large and names no device and no generator."""
    if any(kwargs.get(name) is not None for name in ("device", "generator", "out")):
        return False
    size = kwargs.get("size", args[0] if args and not isinstance(args[0], int) else args)
    return isinstance(size, (tuple, list)) and math.prod(size) >= LARGE_MIN


@contextlib.contextmanager
def large_draws(device: torch.device, *, stay_on_host: bool = False) -> Iterator[_Generator]:
    """In this context large tensors are made on `device`, or only drawn there."""
    generator = _Generator(device)

    def draw(method: Any, tensor: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
        if kwargs.get("generator") is not None or not (tensor.is_cpu or tensor.device == device):
            return plain(method, tensor, args, kwargs)
        generator.was_used = True
        kwargs = {**kwargs, "generator": generator.get()}
        if tensor.device == device:
            return plain(method, tensor, args, kwargs)
        empty = torch.empty_like(tensor, device=device)
        return tensor.copy_(plain(method, empty, args, kwargs))

    def plain(method: Any, tensor: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
        drawn: torch.Tensor = method(tensor, *args, **kwargs)
        return drawn

    with _LargeFactories(generator, stay_on_host), _methods_replaced(draw):
        yield generator


@contextlib.contextmanager
def skipped_draws() -> Iterator[None]:
    """In this context large random tensors are not filled: only the sources matter that the model
    compiles.
    """
    with _EmptyFactories(), _methods_replaced(lambda _method, tensor, _args, _kwargs: tensor):
        yield


class _EmptyFactories(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _RANDOM_FACTORIES and _is_large(args, kwargs):
            return torch.empty(*args, **kwargs)
        return func(*args, **kwargs)


@contextlib.contextmanager
def _methods_replaced(
    draw: Callable[[Any, torch.Tensor, Any, Any], torch.Tensor],
) -> Iterator[None]:
    """In this context `draw` makes the draws into large tensors."""

    def replaced(method: Any) -> Any:
        def draw_into(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            if tensor.numel() < LARGE_MIN:
                drawn: torch.Tensor = method(tensor, *args, **kwargs)
                return drawn
            return draw(method, tensor, args, kwargs)

        return draw_into

    for name in _DRAWS_IN_PLACE:  # Subclasses inherit the methods, as before.
        setattr(torch.Tensor, name, replaced(getattr(torch._C.TensorBase, name)))
    try:
        yield
    finally:
        for name in _DRAWS_IN_PLACE:
            delattr(torch.Tensor, name)


def made_on(
    device: torch.device, make: Callable[[], torch.nn.Module], *, draws_on_host: bool = False
) -> torch.nn.Module:
    """The model that `make` constructs, on `device`, under its own seed."""
    if draws_on_host or device == _HOST:
        return make().to(device)
    with large_draws(device) as generator:
        try:
            return make().to(device)
        except Exception:
            if not generator.was_used:
                raise
    with large_draws(device, stay_on_host=True):
        model = make()
    return model.to(device)
