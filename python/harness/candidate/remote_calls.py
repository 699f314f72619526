# SPDX-License-Identifier: Apache-2.0
"""Timed calls of a candidate whose device another process holds (device/cuda/timed_batch.h)."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from harness.worker import region
from harness.worker.cuda_memory import RemoteMemory
from harness.worker.place import Place
from harness.worker.program import call
from harness.worker.wire import Json


class _Part(ctypes.Structure):
    """OutputPart of device/commands.h."""

    _fields_ = [("source", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


def make(model: torch.nn.Module, body: Json, place: Place) -> Json:
    """Makes the timed calls; returns the tree of the last call's outputs and the inputs that it
    wrote.

    When a call begins, the device process writes its inputs to one of two buffers in alternation.
    """
    client = ctypes.CDLL(None)  # The client is preloaded.
    assert isinstance(place.memory, RemoteMemory)
    source = place.memory.at(body["address"])
    seen = [
        region.unpack(region.shifted(body["inputs"], number * body["stride"]), source)
        for number in range(min(2, body["calls"]))
    ]
    written = [[region.tensors_of(inputs)[i] for i in body["written"]] for inputs in seen]
    if body["frees_cache"]:
        place.trim(kept_max=0)
    tree: Json = {}
    for number in range(body["calls"]):
        client.mc_device_begin_call(number)
        returned = call(model, seen[number % 2]), written[number % 2]
        outputs = [_plain(tensor, place.device) for tensor in region.tensors_of(returned)]
        parts = (_Part * len(outputs))(*(_Part(one.data_ptr(), one.nbytes) for one in outputs))
        client.mc_device_end_call(number, parts, len(outputs))
        if number + 1 == body["calls"]:
            tree = _described(returned, outputs)
    place.finish()
    return tree


def _plain(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor itself if its bytes are contiguous on the device, otherwise a copy."""
    plain = tensor.detach().to(device).resolve_conj().resolve_neg()
    extent = sum((size - 1) * step for size, step in zip(plain.shape, plain.stride()))
    return plain if extent + 1 == plain.numel() else plain.contiguous()


def _described(returned: Any, outputs: list[torch.Tensor]) -> Json:
    tree = region.form_of(returned)
    tensors = region.tensors_of(returned)
    for node, tensor, plain in zip(region.tensor_nodes(tree), tensors, outputs):
        node["device"], node["stride"] = tensor.device.type, list(plain.stride())
    return tree
