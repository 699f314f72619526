# SPDX-License-Identifier: Apache-2.0
"""Python values as a region: a memfd with the tensors' bytes, and a tree that mirrors the value.

`pack` makes both from a value, `unpack` makes the value again; a `Source` gives access to a
tensor's bytes: `Snapshot` reads a private copy (the only way to touch what a candidate process
sent: its file may change or shrink at any time), `Mapped` shares the pages.

Each tensor has pages of its own and ends where its last page ends, up to alignment, so that a
device in software can put a guard page behind it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import json
import math
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch

from harness.worker import settings
from harness.worker.wire import Json, Refusal

CPU = torch.device("cpu")
PAGE = 4096
ALIGNMENT = 16
DEPTH_MAX = 16
NODES_MAX = 20000
DIMENSIONS_MAX = 64
NUMEL_MAX = 1 << 40
BYTES_MAX = 1 << 44

DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
        torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2,
    )
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Source(Protocol):
    """The source of the bytes of a region's tensors."""

    device: torch.device

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int) -> torch.Tensor:
        """A flat uint8 tensor of these bytes; `region_bytes` is 0 for a region in host memory."""


class Memory(Protocol):
    """Where regions live: `HOST`, or a device (place.py)."""

    def write(self, tensors: Sequence[tuple[Json, torch.Tensor]]) -> int:
        """Makes a region of tensors, completes their nodes, and returns its descriptor."""

    def reserve(self, nbytes: int) -> tuple[torch.Tensor, int]:
        """A region of at least `nbytes` bytes: its memory as flat uint8, and its descriptor."""

    def mapping(self, descriptor: int) -> Source:
        """The region's own memory."""

    def snapshot(self, descriptor: int, bytes_max: int) -> Source:
        """A copy of at most `bytes_max` bytes of a region that an untrusted process sent."""


def round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


# ---- Writing ------------------------------------------------------------------------------------


def pack(value: object, memory: Memory | None = None) -> tuple[Json, int]:
    """The tree of `value` and a new region with its tensors, which keep their strides. The caller
    owns the descriptor.
    """
    tensors: list[tuple[Json, torch.Tensor]] = []
    tree = _tree(value, tensors, 0)
    return tree, (memory or HOST).write([_with_strides(*one) for one in tensors])


def pack_named(
    named: Sequence[tuple[str, object]], memory: Memory | None = None
) -> tuple[list[Json], int]:
    """`[{"name", "tree"}]` and one region with all of them, each tensor in row-major order."""
    entries, tensors = describe_named(named)
    return entries, (memory or HOST).write(tensors)


def describe_named(
    named: Sequence[tuple[str, object]],
) -> tuple[list[Json], list[tuple[Json, torch.Tensor]]]:
    """`[{"name", "tree"}]`, and the tensors with their nodes, whose offsets are not known yet."""
    tensors: list[tuple[Json, torch.Tensor]] = []
    entries = [{"name": name, "tree": _tree(value, tensors, 0)} for name, value in named]
    return entries, tensors


@contextlib.contextmanager
def must_pass(source: str) -> Iterator[None]:
    """A context in which a value that cannot be packed makes the task unsupported."""
    try:
        yield
    except Refusal as error:
        raise Refusal("unsupported", f"{source}: {error}") from None


def lay_out(tensors: Sequence[tuple[Json, torch.Tensor]]) -> int:
    """Completes the offsets of the tensors' nodes, and returns a sealed memfd for their bytes."""
    end = 0
    for node, tensor in tensors:
        rounded = round_up(tensor.nbytes, ALIGNMENT)
        end += round_up(max(1, rounded), PAGE)
        node["offset"] = end - rounded
    try:
        return _sealed(max(end, PAGE))
    except OSError as error:
        node = max((node for node, _ in tensors), key=lambda node: int(node["nbytes"]))
        size = f"shape {node['shape']}, {node['nbytes']} bytes"
        why = f"a tensor is too large to be passed on ({size}): {error.strerror}"
        raise Refusal("exception", why) from None


def _sealed(nbytes: int) -> int:
    """A memfd with a sealed size."""
    descriptor = os.memfd_create("region", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, nbytes)
    except OSError:
        os.close(descriptor)
        raise
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return descriptor


def _write(tensors: Sequence[tuple[Json, torch.Tensor]]) -> int:
    descriptor = lay_out(tensors)
    source = Mapped(descriptor)
    for node, tensor in tensors:
        source.bytes_of(node["offset"], tensor.nbytes).copy_(flat_bytes(tensor))
    return descriptor


def _reserve(nbytes: int) -> tuple[torch.Tensor, int]:
    size = round_up(max(1, nbytes), PAGE)
    descriptor = _sealed(size)
    return Mapped(descriptor).bytes_of(0, size), descriptor


def flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's bytes in row-major order, as a flat uint8 tensor (a view where possible)."""
    plain = _resolved(tensor).contiguous().reshape(-1)
    return plain.view(torch.uint8) if plain.numel() else torch.empty(0, dtype=torch.uint8)


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """A flat view of the memory between the tensor's first and its last element."""
    plain = _resolved(tensor)
    if not plain.numel():
        return plain.reshape(-1)
    return plain.as_strided((_extent(plain.shape, plain.stride()),), (1,))


def map_memory(
    tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """The tensor with `change` applied to its memory, which changes each element by itself; the
    strides stay.
    """
    plain = _resolved(tensor)
    return change(memory_of(plain)).as_strided(plain.shape, plain.stride())


def _resolved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg()


def _with_strides(node: Json, tensor: torch.Tensor) -> tuple[Json, torch.Tensor]:
    """A tensor's node, and the memory that a region must contain for it."""
    plain = _resolved(tensor)
    if not plain.is_contiguous():
        node["stride"] = list(plain.stride())
    return node, memory_of(plain)


def _tree(value: object, tensors: list[tuple[Json, torch.Tensor]], depth: int) -> Json:
    if depth > DEPTH_MAX or len(tensors) > NODES_MAX:
        raise Refusal("exception", "a value is nested too deeply or has too many tensors")
    if _is(value, torch.Tensor):
        return _tensor_node(cast(torch.Tensor, value), tensors)
    if _is(value, (list, tuple)):
        items = _items_of(value)
        if len(items) > NODES_MAX:
            raise Refusal("exception", f"a sequence of {len(items)} items is too long")
        kind = "list" if _is(value, list) else "tuple"
        return {"t": kind, "items": [_tree(item, tensors, depth + 1) for item in items]}
    if _is(value, settings.NAMESPACES):
        value = settings.Config(_members_of(value))
    if _is(value, dict):
        pairs = dict.items(cast(dict[Any, object], value))
        node = {"t": "dict", "items": [_item(k, v, tensors, depth) for k, v in pairs]}
        return node | ({"config": True} if _is(value, settings.Config) else {})
    return _leaf(value)


# A container's contents are read with the methods of its base class, and its type with type(): so a
# candidate's subclass cannot run code when its outputs are read.


def _is(value: object, kinds: type | tuple[type, ...]) -> bool:
    return issubclass(type(value), kinds)


def _items_of(value: Any) -> list[Any]:
    """The items of a list or a tuple."""
    return list(list.__iter__(value) if _is(value, list) else tuple.__iter__(value))


def _members_of(value: object) -> dict[str, Any]:
    """The members of a namespace or of a module."""
    kinds = (*settings.NAMESPACES, torch.nn.Module)
    base: Any = next(kind for kind in kinds if _is(value, kind))
    members: dict[str, Any] = base.__dict__["__dict__"].__get__(value)
    return members


def _item(key: object, value: object, tensors: list[Any], depth: int) -> list[Any]:
    if not _is(key, (str, int)):
        raise Refusal("exception", f"a dict key of type {type(key).__name__} cannot be passed on")
    return [key, _tree(value, tensors, depth + 1)]


def _leaf(value: object) -> Json:
    if value is None or _is(value, (bool, str)):
        return {"t": "value", "value": value}
    if _is(value, int):
        number = int.__add__(cast(int, value), 0)
        if -(2**63) <= number < 2**63:
            return {"t": "value", "value": number}
    if _is(value, float):
        return {"t": "float", "hex": float.hex(value)}  # type: ignore[arg-type]
    if _is(value, torch.dtype):
        return {"t": "dtype", "name": str(value).removeprefix("torch.")}
    if _is(value, torch.device):
        return {"t": "device", "name": str(value)}
    raise Refusal("exception", f"a value of type {type(value).__name__} cannot be passed on")


def _tensor_node(tensor: torch.Tensor, tensors: list[tuple[Json, torch.Tensor]]) -> Json:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise Refusal("exception", f"{type(tensor).__name__} is not a plain torch.Tensor")
    if tensor.layout != torch.strided or tensor.dtype not in _NAMES:
        raise Refusal("exception", f"a {tensor.layout} tensor of {tensor.dtype} is not supported")
    if tensor.device.type == "meta":
        raise Refusal("exception", "a tensor on the meta device has no data")
    node = {
        "t": "tensor",
        "dtype": _NAMES[tensor.dtype],
        "shape": list(tensor.shape),
        "offset": 0,
        "nbytes": tensor.numel() * tensor.element_size(),
        "param": isinstance(tensor, torch.nn.Parameter),
    }
    tensors.append((node, tensor))
    return node


def extent_of(node: Json) -> int:
    """The bytes of a region between a tensor's first and its last element."""
    stride = node.get("stride")
    if stride is None or not node["nbytes"]:
        return int(node["nbytes"])
    return _extent(node["shape"], stride) * DTYPES[node["dtype"]].itemsize


def form_of(value: object) -> Json:
    """The tree of tensors that are not copied; their location is passed separately."""
    tensors: list[tuple[Json, torch.Tensor]] = []
    tree = _tree(value, tensors, 0)
    for node, tensor in tensors:
        node["stride"] = list(tensor.stride())
    return tree


def shifted(tree: Json, nbytes: int) -> Json:
    """The tree with all offsets increased by `nbytes` bytes."""
    if tree["t"] == "tensor":
        return {**tree, "offset": tree["offset"] + nbytes}
    if tree["t"] == "dict":
        return {**tree, "items": [[key, shifted(item, nbytes)] for key, item in tree["items"]]}
    if "items" in tree:
        return {**tree, "items": [shifted(item, nbytes) for item in tree["items"]]}
    return tree


# ---- Reading ------------------------------------------------------------------------------------


class Snapshot:
    """Private copies, read with pread: the file's owner can only make the data wrong."""

    device = CPU

    def __init__(self, descriptor: int, bytes_max: int) -> None:
        self._descriptor = descriptor
        self._bytes_left = bytes_max

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int = 0) -> torch.Tensor:
        if nbytes > self._bytes_left:
            raise Refusal("protocol", "a region holds more bytes than allowed")
        if offset + nbytes > os.fstat(self._descriptor).st_size:
            raise Refusal("protocol", "a tensor lies outside its region")
        self._bytes_left -= nbytes
        if not nbytes:
            return torch.empty(0, dtype=torch.uint8)
        buffer = bytearray(nbytes)
        done = 0
        with memoryview(buffer) as view:
            while done < nbytes:
                done += self._read(view[done:], offset + done)
        return torch.frombuffer(buffer, dtype=torch.uint8)

    def _read(self, into: memoryview, offset: int) -> int:
        try:
            step = os.preadv(self._descriptor, [into], offset)
        except OSError as error:  # Not open for reading, a directory: the sender's choice.
            raise Refusal("protocol", f"a region cannot be read: {error}") from None
        if not step:
            raise Refusal("protocol", "a region became shorter while it was read")
        return step


class Mapped:
    """The region's own pages, shared with other processes that map it."""

    device = CPU

    def __init__(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        self._pages = mmap.mmap(descriptor, size) if size else None

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int = 0) -> torch.Tensor:
        if not nbytes or self._pages is None:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self._pages, dtype=torch.uint8, count=nbytes, offset=offset)


class _Host:
    """Regions as memfds."""

    write = staticmethod(_write)
    reserve = staticmethod(_reserve)
    mapping = staticmethod(Mapped)
    snapshot = staticmethod(Snapshot)


HOST: Memory = _Host()


@dataclass
class _Left:
    """The remaining limits of a tree, and the offset of its next tensor if the tree has none."""

    nodes: int
    nbytes: int
    offsets: Iterator[Any] | None


def unpack(
    tree: object,
    source: Source,
    bytes_max: int = BYTES_MAX,
    offsets: Iterable[Any] | None = None,
) -> Any:
    """The value that `tree` describes. Raises Refusal("protocol") for a malformed tree.

    `bytes_max` bounds the copied tensors' size, which may be far larger than in the region because
    of strides. `offsets` replace the tensors' offsets in the tree, in order.
    """
    left = _Left(NODES_MAX, bytes_max, None if offsets is None else iter(offsets))
    return _value(tree, source, 0, left)


def _value(tree: object, source: Source, depth: int, left: _Left) -> Any:
    left.nodes -= 1
    if depth > DEPTH_MAX or left.nodes < 0 or not isinstance(tree, dict):
        raise Refusal("protocol", "a tree is malformed or too large")
    try:
        return _READERS[tree["t"]](tree, source, depth, left)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Refusal("protocol", f"a tree is malformed: {error!r}"[:300]) from None


def _read_tensor(tree: Json, source: Source, _depth: int, left: _Left) -> torch.Tensor:
    dtype, shape = DTYPES[tree["dtype"]], tree["shape"]
    offset = tree["offset"] if left.offsets is None else next(left.offsets, None)
    nbytes = tree["nbytes"]
    numel = _numel(shape)
    if type(offset) is not int or offset < 0 or offset % dtype.itemsize:
        raise ValueError("bad offset")
    if nbytes != numel * dtype.itemsize:
        raise ValueError("nbytes does not agree with shape and dtype")
    left.nbytes -= nbytes
    if left.nbytes < 0:
        raise Refusal("protocol", "a value holds more bytes than allowed")
    stride = tree.get("stride")
    if not numel:
        tensor = torch.empty(shape, dtype=dtype, device=source.device)
    elif stride is not None:
        extent = _extent(shape, stride) * dtype.itemsize
        tensor = source.bytes_of(offset, extent, int(tree.get("region_bytes", 0)))
        tensor = tensor.view(dtype).as_strided(shape, stride)
    else:
        tensor = source.bytes_of(offset, nbytes, int(tree.get("region_bytes", 0)))
        tensor = tensor.view(dtype).reshape(shape)
    if tree.get("device") == CPU.type:
        tensor = tensor.cpu()
    if not tree.get("param"):
        return tensor
    # The constructor is avoided: perturb.py makes it add noise while a model is constructed.
    return torch.Tensor._make_subclass(torch.nn.Parameter, tensor)


def _numel(shape: Any) -> int:
    """The number of elements; strides of a tensor without any are products of sizes, too."""
    if len(shape) > DIMENSIONS_MAX or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("bad shape")
    if math.prod(max(1, size) for size in shape) > NUMEL_MAX:
        raise ValueError("bad size")
    return math.prod(shape)


def _extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from a tensor's first to its last in memory, both counted."""
    steps_are_sound = all(type(step) is int and 0 <= step <= NUMEL_MAX for step in stride)
    if len(shape) != len(stride) or not steps_are_sound:
        raise ValueError("bad stride")
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride))


def _read_value(tree: Json, _s: Source, _depth: int, _left: _Left) -> object:
    value = tree["value"]
    if value is not None and not isinstance(value, (bool, int, str)):
        raise ValueError("not a plain value")
    return value


def _read_sequence(tree: Json, source: Source, depth: int, left: _Left) -> list[Any]:
    return [_value(item, source, depth + 1, left) for item in tree["items"]]


def _read_dict(tree: Json, source: Source, depth: int, left: _Left) -> dict[Any, Any]:
    for key, _ in tree["items"]:
        if not isinstance(key, (str, int)):
            raise ValueError("bad key")
    items = {key: _value(item, source, depth + 1, left) for key, item in tree["items"]}
    return settings.Config(items) if tree.get("config") else items


def _read_dtype(tree: Json, _s: Source, _depth: int, _left: _Left) -> torch.dtype:
    dtype = vars(torch)[tree["name"]]  # Unlike an attribute, it never imports a module.
    if not isinstance(dtype, torch.dtype):
        raise ValueError("not a dtype")
    return dtype


def _read_device(tree: Json, _s: Source, _depth: int, _left: _Left) -> torch.device:
    try:
        return torch.device(tree["name"])
    except RuntimeError as error:
        raise ValueError(str(error)) from None


_READERS: dict[str, Callable[[Json, Source, int, _Left], Any]] = {
    "tensor": _read_tensor,
    "list": _read_sequence,
    "tuple": lambda *arguments: tuple(_read_sequence(*arguments)),
    "dict": _read_dict,
    "value": _read_value,
    "float": lambda tree, *_: float.fromhex(tree["hex"]),
    "dtype": _read_dtype,
    "device": _read_device,
}


# ---- Walking ------------------------------------------------------------------------------------


def tensors_of(value: object) -> list[torch.Tensor]:
    """All tensors in a value, in the order of its tree."""
    if _is(value, torch.Tensor):
        return [value]  # type: ignore[list-item]
    if _is(value, settings.NAMESPACES):
        value = _members_of(value)
    if _is(value, dict):
        value = list(dict.values(value))  # type: ignore[arg-type]
    if _is(value, (list, tuple)):
        return [tensor for item in _items_of(value) for tensor in tensors_of(item)]
    return []


def tensor_nodes(tree: Json) -> list[Json]:
    """The nodes of a tree's tensors, in the order of `tensors_of`."""
    if tree["t"] == "tensor":
        return [tree]
    items = tree.get("items", [])
    nodes = [item[1] for item in items] if tree["t"] == "dict" else items
    return [found for node in nodes for found in tensor_nodes(node)]


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same value with every tensor replaced."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [map_tensors(item, change) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def digest(tree: Json, tensors: Sequence[torch.Tensor]) -> str:
    """BLAKE2b-256 of a value: its tree and the bytes of its tensors."""
    state = hashlib.blake2b(json.dumps(tree, sort_keys=True).encode(), digest_size=32)
    for tensor in tensors:
        flat = flat_bytes(tensor)  # Keeps the tensor alive while its bytes are read.
        state.update((ctypes.c_uint8 * flat.numel()).from_address(flat.data_ptr()))
    return state.hexdigest()


def same_bytes(first: torch.Tensor, second: torch.Tensor) -> bool:
    """True if two tensors with equal dtype and shape have the same bits."""
    return torch.equal(_words(first), _words(second))


def _words(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as 8-byte words if possible: a device compares words as fast as bytes."""
    data = flat_bytes(tensor)
    fits = data.numel() % 8 == 0 and data.storage_offset() % 8 == 0
    return data.view(torch.int64) if fits else data


# The limit of the total bytes of parameters and buffers that are compared after each trial; more
# would take longer than a trial.
STATE_BYTES_CHECKED = 16 << 20


def state_to_check(state: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
    """The state that is compared after a trial: all of it, or none if it is too large."""
    return state if sum(one.nbytes for one in state.values()) <= STATE_BYTES_CHECKED else {}


def are_alike(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    """True if they differ at most in axes of length 1: a bias of [8, 1, 1] may be one of [8]."""
    same_shape = mine.squeeze().shape == theirs.squeeze().shape
    return same_shape and mine.dtype == theirs.dtype


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, including non-persistent ones."""
    return {**_named(model, "_parameters"), **_named(model, "_buffers")}


def buffers_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Buffers by name, each of them once."""
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for name, buffer in _named(model, "_buffers").items():
        found.setdefault(id(buffer), (name, buffer))
    return dict(found.values())


def _named(model: torch.nn.Module, kind: str, prefix: str = "") -> dict[str, torch.Tensor]:
    members = _members_of(model)
    found = {prefix + name: one for name, one in dict.items(members[kind]) if one is not None}
    for name, child in dict.items(members["_modules"]):
        if child is not None:
            found.update(_named(child, kind, f"{prefix}{name}."))
    return found
