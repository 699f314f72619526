# SPDX-License-Identifier: Apache-2.0
"""Which operators of PyTorch a reference calls."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.worker import perturb

# Operators that copies, casts and fills of PyTorch can replace.
_MOVES = frozenset("""
    clone copy _to_copy contiguous cat stack flip roll rot90 repeat index index_select gather take
    embedding select_scatter slice_scatter scatter index_put _index_put_impl index_copy index_fill
    masked_fill masked_select where tril triu constant_pad_nd replication_pad1d replication_pad2d
    replication_pad3d reflection_pad1d reflection_pad2d reflection_pad3d pixel_shuffle
    pixel_unshuffle channel_shuffle native_channel_shuffle im2col upsample_nearest1d
    upsample_nearest2d upsample_nearest3d diag_embed diagonal_copy unfold_copy trunc floor ceil fix
    view_copy expand_copy permute_copy transpose_copy detach lift_fresh equal
    zeros ones full empty empty_like zeros_like ones_like full_like arange scalar_tensor fill zero
    eye new_zeros new_ones new_empty new_full new_empty_strided empty_strided
    """.split())


class Operators(TorchDispatchMode):
    """Counts the operators that compute something, by their names without "_" at the end; their
    calls by the shapes of their tensors ("mul.Tensor[300][300]", as facade/runtime/record.cc in
    device/ names a candidate's); and their casts ("cast float32 to int64").
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._is_paused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        returns = func._schema.returns
        is_view = all(one.alias_info and not one.alias_info.is_write for one in returns)
        if not is_view and not self._is_paused:
            self.counts[func._overloadpacket.__name__.removesuffix("_")] += 1
            self.calls[_signature(func, args, kwargs or {})] += 1
            if (cast := _cast_of(func, args, kwargs or {})) is not None:
                self.calls[cast] += 1
        return func(*args, **(kwargs or {}))

    @property
    def only_move(self) -> bool:
        """True if copies could do all of the work, and there is some."""
        return bool(self.counts) and self.counts.keys() <= _MOVES

    @contextlib.contextmanager
    def of_constructor(self) -> Iterator[None]:
        """A context in which a model is constructed, its disturbed constants left out."""
        before, perturb.unnoticed = perturb.unnoticed, self._paused
        try:
            with self:
                yield
        finally:
            perturb.unnoticed = before

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False


def casts_to(tensors: Iterable[torch.Tensor]) -> list[str]:
    """The casts that a candidate of a task with these tensors may leave to PyTorch. A kernel
    writes flags as bytes, which become booleans.
    """
    types = {one.dtype for one in tensors}
    floating = [one for one in types if one.is_floating_point or one.is_complex]
    casts = [f"cast {one}" for one in floating] + ["cast uint8 to bool"] * (torch.bool in types)
    return sorted(cast.replace("torch.", "") for cast in casts)


def _signature(func: Any, args: Any, kwargs: Any) -> str:
    name = func._overloadpacket.__name__.removesuffix("_")
    values = [*args, *kwargs.values()]
    given = [one for value in values for one in (value if isinstance(value, list) else [value])]
    shapes = [list(one.shape) for one in given if isinstance(one, torch.Tensor)]
    return f"{name}.{func._schema.overload_name}" + "".join(map(str, shapes)).replace(" ", "")


def _cast_of(func: Any, args: Any, kwargs: Any) -> str | None:
    """A cast from one type to another, if the call is one."""
    name = func._schema.name
    if name == "aten::_to_copy":
        source, target = args[0].dtype, kwargs.get("dtype") or args[0].dtype
    elif name == "aten::copy_" and isinstance(args[1], torch.Tensor):
        source, target = args[1].dtype, args[0].dtype
    else:
        return None
    if source == target:
        return None
    return f"cast {source} to {target}".replace("torch.", "")
