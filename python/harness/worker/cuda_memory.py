# SPDX-License-Identifier: Apache-2.0
"""Regions in the memory of a CUDA device, as virtual-memory allocations behind descriptors.

A region is one allocation of cuMemCreate, exported as a POSIX file descriptor; a process that
receives the descriptor maps the same device memory (CUDA driver API, "Virtual Memory Management").
Classic CUDA IPC handles do not work between the namespaces that judge and candidate process live
in; these do.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from harness.worker.cuda_names import CUDA, Names
from harness.worker.region import flat_bytes, round_up
from harness.worker.wire import Json, Refusal

ALIGNMENT = 512  # The alignment of each tensor, which PyTorch's own allocator gives too.
EMPTY_BYTES = 2 << 20  # The size of a region of no tensors (python/harness/device/process.py).
_PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_ON_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_POSIX_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_READ_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_SLACK = 64 << 20  # Alignment and granularity of a region's tensors.


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("requested_handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32_handle_meta_data", ctypes.c_void_p),
        ("compression_type", ctypes.c_ubyte),
        ("gpu_direct_rdma_capable", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    ]


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class Pages(Protocol):
    """Device memory at an address, owned by this object."""

    address: int
    nbytes: int


TensorOf = Callable[[Any], torch.Tensor]  # The bytes of Pages as a tensor that holds them.


def tensor_of(pages: Pages) -> torch.Tensor:
    """A tensor of the pages' bytes, by CUDA's array interface."""
    return torch.as_tensor(_Interface(pages), device=CUDA.torch_device)


class _Interface:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.__cuda_array_interface__ = {
            "shape": (pages.nbytes,),
            "typestr": "|u1",
            "data": (pages.address, False),
            "version": 3,
        }


class _Driver:
    """The functions of the driver that regions need; raises for every failure."""

    def __init__(self, names: Names, tensor_of: TensorOf) -> None:
        self.device = names.torch_device
        self.tensor_of = tensor_of
        self._prefix, self._platform = names.prefix, names.device.upper()
        torch.zeros(1, device=self.device)  # Creates the context.
        self._library = ctypes.CDLL(names.driver)
        properties = _Properties()
        properties.type = _PINNED
        properties.requested_handle_types = _POSIX_DESCRIPTOR
        properties.location = _Location(_ON_DEVICE, self.device.index)
        self._properties = properties
        size = ctypes.c_size_t()
        self._call("MemGetAllocationGranularity", ctypes.byref(size), ctypes.byref(properties), 0)
        self.granularity = size.value

    def create(self, nbytes: int) -> tuple[int, int]:
        """A new allocation: its handle and a descriptor of it."""
        handle, descriptor = ctypes.c_uint64(), ctypes.c_int()
        size, none = ctypes.c_size_t(nbytes), ctypes.c_uint64(0)
        properties = ctypes.byref(self._properties)
        self._call("MemCreate", ctypes.byref(handle), size, properties, none)
        arguments = (ctypes.byref(descriptor), handle, _POSIX_DESCRIPTOR, none)
        self._call("MemExportToShareableHandle", *arguments)
        return handle.value, descriptor.value

    def receive(self, descriptor: int) -> int:
        """The handle behind a descriptor."""
        handle = ctypes.c_uint64()
        source = ctypes.c_void_p(descriptor)
        name = "MemImportFromShareableHandle"
        self._call(name, ctypes.byref(handle), source, _POSIX_DESCRIPTOR)
        return handle.value

    def map(self, handle: int, nbytes: int) -> int:
        """Maps an allocation; the handle is released, the memory lives as long as it is mapped."""
        address = ctypes.c_uint64()
        size, none = ctypes.c_size_t(nbytes), ctypes.c_uint64(0)
        held = ctypes.c_uint64(handle)
        try:
            no_alignment = ctypes.c_size_t(0)
            reference = ctypes.byref(address)
            self._call("MemAddressReserve", reference, size, no_alignment, none, none)
            self._call("MemMap", address, size, ctypes.c_size_t(0), held, none)
        finally:
            self._function("MemRelease")(held)
        access = _Access(_Location(_ON_DEVICE, self.device.index), _READ_WRITE)
        self._call("MemSetAccess", address, size, ctypes.byref(access), ctypes.c_size_t(1))
        return address.value

    def unmap(self, address: int, nbytes: int) -> None:
        where, size = ctypes.c_uint64(address), ctypes.c_size_t(nbytes)
        self._function("MemUnmap")(where, size)
        self._function("MemAddressFree")(where, size)

    def _function(self, name: str) -> Any:
        return getattr(self._library, self._prefix + name)

    def _call(self, name: str, *arguments: Any) -> None:
        status = self._function(name)(*arguments)
        name = self._prefix + name
        if status == _OUT_OF_MEMORY:
            raise MemoryError(f"the device has no room for a region ({name})")
        if status:
            raise OSError(f"{name} failed with {self._platform} error {status}")


class _Mapped:
    """A mapped region; unmapped once no tensor refers to it."""

    def __init__(self, driver: _Driver, handle: int, nbytes: int) -> None:
        self._driver, self.nbytes = driver, nbytes
        self.address = driver.map(handle, nbytes)

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address:
            self._driver.unmap(address, self.nbytes)


class Mapping:
    """A region's own device memory (a region.Source), as far as `nbytes_max` bytes of it."""

    def __init__(self, driver: _Driver, descriptor: int, nbytes_max: int) -> None:
        self.device = driver.device
        self._driver, self._descriptor, self._nbytes_max = driver, descriptor, nbytes_max
        self._bytes: torch.Tensor | None = None

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int) -> torch.Tensor:
        """A driver maps a region only as a whole, and fails if the sender's size is wrong."""
        if self._bytes is None:
            self._bytes = self._map(region_bytes)
        if offset + nbytes > self._bytes.numel():
            raise Refusal("protocol", "a tensor lies outside its region")
        return self._bytes[offset : offset + nbytes]

    def _map(self, nbytes: int) -> torch.Tensor:
        if not 0 < nbytes <= self._nbytes_max or nbytes % self._driver.granularity:
            raise Refusal("protocol", f"a region of {nbytes} bytes is not allowed")
        try:
            pages = _Mapped(self._driver, self._driver.receive(self._descriptor), nbytes)
        except OSError as error:
            raise Refusal("protocol", f"a region cannot be mapped: {error}") from None
        return self._driver.tensor_of(pages)


def write_aligned(
    reserve: Callable[[int], tuple[torch.Tensor, int]],
    tensors: Sequence[tuple[Json, torch.Tensor]],
    finish: Callable[[], None] = lambda: None,
) -> int:
    """Lays the tensors out in a region of `reserve`, completes their nodes, and returns the
    region's descriptor. `finish` waits for the copies.
    """
    end = 0
    for node, tensor in tensors:
        node["offset"] = end
        end += round_up(max(1, tensor.nbytes), ALIGNMENT)
    whole, descriptor = reserve(end or EMPTY_BYTES)
    try:
        for node, tensor in tensors:
            node["region_bytes"] = whole.numel()
            place = whole[node["offset"] : node["offset"] + tensor.nbytes]
            place.copy_(flat_bytes(tensor))
        finish()
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class CudaMemory:
    """Where a region's bytes live on the CUDA backend (a region.Memory)."""

    def __init__(self, names: Names = CUDA, tensor_of: TensorOf = tensor_of) -> None:
        self._names = names
        self._driver = _Driver(names, tensor_of)

    def write(self, tensors: Sequence[tuple[Json, torch.Tensor]]) -> int:
        for node, tensor in tensors:
            node["device"] = tensor.device.type
        return write_aligned(self.reserve, tensors, self._names.module.synchronize)

    def reserve(self, nbytes: int) -> tuple[torch.Tensor, int]:
        nbytes = round_up(max(1, nbytes), self._driver.granularity)
        try:
            handle, descriptor = self._driver.create(nbytes)
        except MemoryError:  # PyTorch's allocator may keep unused memory.
            self._names.module.empty_cache()
            handle, descriptor = self._driver.create(nbytes)
        try:
            return self._driver.tensor_of(_Mapped(self._driver, handle, nbytes)), descriptor
        except BaseException:
            os.close(descriptor)
            raise

    def mapping(self, descriptor: int) -> Mapping:
        return Mapping(self._driver, descriptor, 1 << 62)

    def snapshot(self, descriptor: int, bytes_max: int) -> Mapping:
        """Makes no copy, for which there may be no memory: the sender may still write to the
        region.
        """
        return Mapping(self._driver, descriptor, bytes_max + _SLACK)


class RemoteSource:
    """A region that the device process has mapped at an address (a region.Source)."""

    def __init__(self, address: int, memory: RemoteMemory) -> None:
        self.device = memory.device
        self._address, self._memory = address, memory

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int) -> torch.Tensor:
        if offset + nbytes > region_bytes:
            raise Refusal("protocol", "a tensor lies outside its region")
        return self._memory.tensor_of(_View(self._address + offset, nbytes))


@dataclass(frozen=True)
class _View:
    address: int
    nbytes: int


class RemoteMemory:
    """A region's memory for a candidate process: the device process maps it."""

    def __init__(self, names: Names = CUDA, tensor_of: TensorOf = tensor_of) -> None:
        self.device = names.torch_device
        self.tensor_of = tensor_of
        self._names = names

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Refusal("protocol", "a candidate process makes and maps no regions")

    write = reserve = mapping = snapshot = _refuse

    def at(self, address: int) -> RemoteSource:
        return RemoteSource(address, self)

    def describe(self, tensors: Sequence[tuple[Json, torch.Tensor]]) -> list[torch.Tensor]:
        """Completes the nodes with the tensors' addresses; returns the tensors that must live until
        they are copied.
        """
        kept = []
        for node, tensor in tensors:
            node["device"] = tensor.device.type
            plain = flat_bytes(tensor.detach().to(self.device))
            node["offset"] = plain.data_ptr()
            kept.append(plain)
        self._names.module.synchronize()
        return kept
