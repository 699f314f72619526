# SPDX-License-Identifier: Apache-2.0
"""Launches of Triton's kernels: arguments by the compiled signature, and launch attributes."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

WARP = 32
_MAP_BYTES, _MAP_ALIGNMENT = 128, 64
_CLUSTER, _COOPERATIVE, _SERIALIZATION = 4, 2, 6  # CUlaunchAttributeID
# Triton's numbers of element types in a tensor map that differ from CUtensorMapDataType.
_MAP_KINDS = {8: 10, 9: 8, 10: 9}
_INTEGERS: dict[str, Any] = {
    "i1": ctypes.c_int8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u1": ctypes.c_uint8,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
}
_FLOATS: dict[str, Any] = {
    "fp16": lambda value: ctypes.c_uint16(struct.unpack("<H", struct.pack("<e", value))[0]),
    "bf16": lambda value: ctypes.c_uint16(struct.unpack("<I", struct.pack("<f", value))[0] >> 16),
    "fp32": ctypes.c_float,
    "f32": ctypes.c_float,
    "fp64": ctypes.c_double,
}


class Cuda:
    """The driver's functions, which raise on failure."""

    def __init__(self) -> None:
        self._client = ctypes.CDLL(None)  # The client is preloaded.

    def __call__(self, name: str, *arguments: Any) -> None:
        status = getattr(self._client, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._client.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"Triton Error [CUDA]: {name}: {(text.value or b'?').decode()}")

    def attribute(self, function: ctypes.c_void_p, number: int) -> int:
        value = ctypes.c_int()
        self("cuFuncGetAttribute", ctypes.byref(value), number, function)
        return value.value


class TensorMap:
    """Memory for a CUtensorMap, with the driver's alignment."""

    def __init__(self) -> None:
        self._room = (ctypes.c_uint8 * (_MAP_BYTES + _MAP_ALIGNMENT))()
        start = -(-ctypes.addressof(self._room) // _MAP_ALIGNMENT) * _MAP_ALIGNMENT
        self.place = ctypes.c_void_p(start)


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16)]


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint32),
    ]


def _leaves(kind: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The types and values that are not constants, with tuples flattened."""
    if isinstance(kind, tuple):
        for inner, one in zip(kind, value, strict=True):
            yield from _leaves(inner, one)
    elif kind != "constexpr":
        yield kind, value


def _packed(kind: str, value: Any) -> Any:
    if kind.startswith("*"):
        address = value.data_ptr() if hasattr(value, "data_ptr") else value or 0
        return ctypes.c_uint64(address)
    make = _INTEGERS.get(kind) or _FLOATS.get(kind)
    if make is None:
        raise RuntimeError(f"an argument of Triton's type {kind} is not judged yet")
    return make(value)


Encode = Callable[..., TensorMap]  # Driver.utils.fill_tma_descriptor


class Launcher:
    """Launches one compiled kernel."""

    def __init__(self, cuda: Cuda, encode: Encode, source: Any, metadata: Any) -> None:
        self._cuda, self._encode, self._metadata = cuda, encode, metadata
        self._kinds = list(source.signature.values())
        self._maps = list(getattr(metadata, "tensordesc_meta", None) or [])
        self._clusters = getattr(metadata, "num_ctas", 1)

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
        _packed_metadata, launch_metadata, enter, leave, *values = rest
        if 0 in (x, y, z):
            return
        scratch = self._scratch(x * y * z, stream)
        held = list(self._arguments(values))
        held += [ctypes.c_uint64(scratch.data_ptr() if scratch is not None else 0)]
        held += [ctypes.c_uint64(0)]  # The profiler's scratch memory: none.
        places = (ctypes.c_void_p * len(held))(*(_address(one) for one in held))
        if enter is not None:
            enter(launch_metadata)
        metadata = self._metadata
        attributes = self._attributes()
        config = _Config(
            (x * self._clusters, y, z), (metadata.num_warps * WARP, 1, 1), metadata.shared, stream,
            attributes, len(attributes),
        )  # fmt: skip
        self._cuda(
            "cuLaunchKernelEx", ctypes.byref(config), ctypes.c_void_p(function), places, None
        )
        if leave is not None:
            leave(launch_metadata)

    def _arguments(self, values: Sequence[Any]) -> Iterator[Any]:
        maps = iter(self._maps or [None] * len(self._kinds))
        for kind, value in zip(self._kinds, values, strict=True):
            if isinstance(kind, str) and kind.startswith("tensordesc"):
                yield from self._descriptor(kind, value, next(maps))
            else:
                for leaf in _leaves(kind, value):
                    yield _packed(*leaf)

    def _descriptor(self, kind: str, value: Any, form: dict[str, Any] | None) -> Iterator[Any]:
        """The arguments for a descriptor: a tensor map if the kernel was compiled for one,
        otherwise base, sizes, strides and padding; then sizes and strides again.
        """
        sizes = [ctypes.c_int64(int(size)) for size in value.shape]
        strides = [ctypes.c_int64(int(step)) for step in value.strides]
        if form is None:
            element = re.match(r"tensordesc<([^\[>]*)", kind)
            assert element is not None
            yield _packed("*" + element.group(1), value.base)
            yield from sizes
            yield from strides
            yield ctypes.c_int8(value.padding == "nan")
        else:
            shape = [int(size) for size in value.shape]
            shape[-1] *= 2 if form["fp4_padded"] else 1
            number = form["elem_type"]
            yield self._encode(
                value.base.data_ptr(), form["swizzle"], form["elem_size"],
                _MAP_KINDS.get(number, number), form["block_size"], shape, value.strides,
                int(value.padding == "nan"),
            )  # fmt: skip
        yield from (ctypes.c_int32(size.value) for size in sizes)
        yield from strides

    def _scratch(self, programs: int, stream: int) -> Any:
        """Scratch memory for the kernel, from the allocator that the candidate set."""
        if not self._metadata.global_scratch_size:
            return None
        from triton.runtime import _allocation

        nbytes = programs * self._clusters * self._metadata.global_scratch_size
        allocate = _allocation._allocator.get()
        return allocate(nbytes, self._metadata.global_scratch_align, stream)

    def _attributes(self) -> Any:
        found = []
        if self._metadata.launch_pdl:
            found.append((_SERIALIZATION, [1]))
        if self._metadata.launch_cooperative_grid:
            found.append((_COOPERATIVE, [1]))
        if self._clusters > 1:
            found.append((_CLUSTER, [self._clusters, 1, 1]))
        made = [_Attribute(number, 0, tuple(value)) for number, value in found]
        return (_Attribute * len(made))(*made)


def _address(argument: Any) -> int | None:
    """The address of an argument that is passed by value."""
    place = getattr(argument, "place", None)
    return ctypes.addressof(argument) if place is None else place.value
