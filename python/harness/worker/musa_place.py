# SPDX-License-Identifier: Apache-2.0
"""The MUSA backend's Place: CUDA's under the names of MUSA, on PyTorch with torch_musa.

This module has never run on MUSA hardware (docs/musa.md).
"""

from __future__ import annotations

import ctypes
import importlib
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.utils.dlpack import from_dlpack

from harness.worker.cuda_memory import Pages, RemoteMemory
from harness.worker.cuda_names import MUSA, Names
from harness.worker.cuda_place import CudaPlace
from harness.worker.place import Place, digest_by_sums

_EXTENSION_DEVICE = 12  # kDLExtDev, which PyTorch takes for PrivateUse1.
_UNSIGNED = 1  # kDLUInt


# ---- Memory as tensors --------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_held: dict[int, Any] = {}  # Memory that tensors refer to, by the addresses of their structures.


def _release(address: int) -> None:
    _held.pop(address, None)


_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_release)


def tensor_of(pages: Pages) -> torch.Tensor:
    """The pages' bytes as a tensor, which keeps them alive: PyTorch has no array interface for
    MUSA.
    """
    shape = (ctypes.c_int64 * 1)(pages.nbytes)
    tensor = _Tensor(pages.address, _EXTENSION_DEVICE, 0, 1, _UNSIGNED, 8, 1, shape)
    tensor.deleter = ctypes.cast(_deleter, ctypes.c_void_p).value
    _held[ctypes.addressof(tensor)] = (tensor, shape, pages)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    found: torch.Tensor = from_dlpack(make(ctypes.addressof(tensor), b"dltensor", None))
    return found


# ---- The place ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MusaPlace(CudaPlace):
    dispatch_key: str = MUSA.dispatch_key
    builder: str = "torch_musa.utils.musa_extension"
    kernels: tuple[str, str] = ("torch_musa", "libmusa_kernels*.so")
    names: ClassVar[Names] = MUSA
    tensor_of = staticmethod(tensor_of)

    @classmethod
    def open_device(cls) -> torch.device:
        importlib.import_module("torch_musa")
        _set_tf32(False)
        return cls.names.torch_device

    @classmethod
    def open_remote(cls) -> Place:
        return cls(cls.open_device(), RemoteMemory(cls.names, cls.tensor_of), digest_by_sums)

    def triton(self) -> tuple[Names, int, int] | None:
        """None: MUSA has its own Triton compiler, which is not supported."""
        return None

    def set_tf32(self, is_allowed: bool) -> None:
        _set_tf32(is_allowed)

    def disable_vendor_libraries(self) -> None:
        """MuDNN has no switch; the device process refuses its kernels."""


def _set_tf32(is_allowed: bool) -> None:
    """One switch controls products of matrices and convolutions; sources disagree about its
    default.
    """
    getattr(torch.backends, "mudnn").allow_tf32 = is_allowed
