# SPDX-License-Identifier: Apache-2.0
"""Operators that a candidate defines: TORCH_LIBRARY in its sources, torch.library in its module.

PyTorch's own machinery serves both. A recorder's Python kernels need the stand-in for CUDA again,
which PyTorch switches off while a call is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.library import Library, fallthrough_kernel
from torch.overrides import _get_current_function_mode_stack

from harness.candidate.cuda_on_cpu import CudaOnCpu


def install(stands_in: bool = False) -> None:
    """Patches torch.library for the rest of this process."""
    # Nothing is compiled by torch.compile here, and importing torch._dynamo takes seconds.
    setattr(torch, "_disable_dynamo", _unchanged)
    if stands_in:
        setattr(Library, "impl", _impl)


def _unchanged(function: Any = None, recursive: bool = True) -> Any:
    return _unchanged if function is None else function


_library_impl: Callable[..., Any] = Library.impl


def _impl(library: Library, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> Any:
    """Library.impl, with the stand-in for CUDA active while `fn` runs."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        # A kernel for autograd calls the device's kernel; two active stand-ins would undo each
        # other.
        modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        if any(isinstance(mode, CudaOnCpu) for mode in modes):
            return fn(*args, **kwargs)
        with CudaOnCpu():
            return fn(*args, **kwargs)

    is_function = hasattr(fn, "__code__") and fn is not fallthrough_kernel
    return _library_impl(library, op_name, kernel if is_function else fn, dispatch_key, **options)
