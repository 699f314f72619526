# SPDX-License-Identifier: Apache-2.0
"""Replays a recording on this process's device, without the candidate, and compares the outputs.

The executor receives the commands and this process the supervisor's requests, in the order of the
recording (docs/replay.md).
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from harness.device import recording
from harness.device.recording import Command, Malformed
from harness.judge.compare import TOLERANCES, Comparer
from harness.worker import region
from harness.worker.wire import Answer, Json, Question, Refusal

TEXTS_MAX = 20  # Differences and errors that are reported.
_ALIGNMENT = 16  # The alignment of each tensor that is compared.
_TEXT_PART = 1 << 19  # kTextPartMax of device/commands.h
# The replies to these commands depend on time.
_UNCERTAIN = {recording.ELAPSED, recording.QUERY_STREAM, recording.QUERY_EVENT}
# The commands that begin with one or two addresses, and the bytes of these addresses.
_ADDRESSES = {
    recording.WRITE: 8, recording.READ: 8, recording.COPY: 16, recording.FILL: 8,
    recording.TENSOR_MAP: 8,
}  # fmt: skip


@dataclass(frozen=True)
class Executed:
    """The result of a command."""

    is_reply: bool
    status: int
    reply: bytes


class Device(Protocol):
    """The part of DeviceProcess that a replay needs."""

    capability: int
    places: tuple[int, int]

    def answer(self, question: Question) -> Answer: ...
    def begin_replay(self, described: dict[str, int], images: str) -> None: ...
    def run(self, op: int, body: bytes) -> Executed | None: ...
    def read(self, address: int, nbytes: int) -> bytes: ...


class Bytes:
    """Consecutive tensors in a buffer (a region.Source)."""

    device = region.CPU

    def __init__(self, data: bytearray) -> None:
        self._data = data

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int = 0) -> torch.Tensor:
        if offset + nbytes > len(self._data):
            raise Malformed("an output is cut short")
        if not nbytes:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self._data, dtype=torch.uint8, count=nbytes, offset=offset).clone()


@dataclass
class Replay:
    """One recording on one device."""

    device: Device
    comparer: Comparer
    counts: dict[str, int] = field(
        default_factory=lambda: {"commands": 0, "calls": 0, "outputs": 0, "equal": 0}
    )
    differences: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _images: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    _moved: list[tuple[int, int, int]] = field(default_factory=list)  # Begin, bytes, distance.
    _last: tuple[Command, Executed] | None = None  # The next frame should be its reply or error.

    def run(self, body: memoryview) -> None:
        """Raises Refusal if the bytes are not a recording or it cannot be replayed here."""
        frames = list(recording.frames(body))
        first = recording.parse_act(frames[0][1]) if frames and frames[0][0] == 4 else None
        if first is None or first[0]["op"] != "open":
            raise Malformed("it does not begin with a device")
        file = self._images_file(frames)
        try:
            self._open(first[0], f"/proc/self/fd/{file}")
            for kind, payload in frames[1:]:
                self._step(kind, payload)
            self._expect(None)
        finally:
            os.close(file)

    def _images_file(self, frames: list[tuple[int, memoryview]]) -> int:
        """A file of all images, from which the executor loads them."""
        file = os.memfd_create("images", os.MFD_CLOEXEC)
        offset = 0
        for kind, payload in frames:
            if kind != recording.ACT:
                continue
            body, data = recording.parse_act(payload)
            if body["op"] != "image":
                continue
            image = bytes(data)
            recording.require_ptx(image, [f"module {body.get('module')}"])
            self._images[_int(body, "module")] = offset, image
            offset += os.pwrite(file, image + bytes(-len(image) % 16), offset)
        return file

    def _open(self, body: Json, images: str) -> None:
        if body.get("places") != list(self.device.places):
            raise Refusal("unsupported", "this device's memory is at other addresses")
        described = body.get("described", {})
        is_sound = isinstance(described, dict) and all(
            isinstance(name, str) and type(value) is int for name, value in described.items()
        )
        if not is_sound:
            raise Malformed("its device is described in another form")
        self.device.begin_replay(described, images)

    def _step(self, kind: int, payload: memoryview) -> None:
        if kind == recording.COMMAND:
            self._expect(None)
            self._command(Command.parse(payload))
        elif kind == recording.ACT:
            self._expect(None)
            self._act(*recording.parse_act(payload))
        else:
            self._expect(bytes(payload))

    def _command(self, command: Command) -> None:
        ran = self.device.run(command.op, self._relocated(command))
        if ran is None:
            raise Malformed("a command is unknown")
        self.counts["commands"] += 1
        self._last = command, ran

    def _expect(self, note: bytes | None) -> None:
        """Compares the last command's result with the recorded one; no recorded frame means
        success.
        """
        if self._last is None:
            if note is not None:
                raise Malformed("a reply has no command")
            return
        command, ran = self._last
        self._last = None
        status = 0 if note is None else int.from_bytes(note[:4], "little")
        if note is not None and command.op == recording.FIND_VARIABLE and len(note) >= 20:
            self._note_variable(note[4:20], ran.reply)
        if ran.status == status or command.op in _UNCERTAIN:
            return
        ended = "no error" if ran.status == 0 else f"error {ran.status}"
        before = "no error" if status == 0 else f"error {status}"
        self.errors.append(
            f"command {self.counts['commands']} (number {command.op} of device/commands.h) ended "
            f"with {ended}, and with {before} when it was recorded"
        )

    def _note_variable(self, recorded: bytes, reply: bytes) -> None:
        """Notes a module variable's address on this device; arguments that point to it are
        adjusted.
        """
        if len(reply) < 16:
            return
        (old, nbytes), (new, _) = (struct.unpack_from("<QQ", text) for text in (recorded, reply))
        if old != new:
            self._moved.append((old, max(1, nbytes), new - old))

    def _relocated(self, command: Command) -> bytes:
        """The command's body with the addresses of variables on this device."""
        begin, end = 0, _ADDRESSES.get(command.op, 0)
        if command.op == recording.LAUNCH:
            begin, end = recording.LAUNCH_BYTES, len(command.body) & ~7
        if not self._moved or begin >= end or end > len(command.body):
            return command.body
        body = bytearray(command.body)
        for at in range(begin, end, 8):
            (word,) = struct.unpack_from("<Q", body, at)
            for old, nbytes, distance in self._moved:
                if old <= word < old + nbytes:
                    struct.pack_into("<Q", body, at, (word + distance) % 2**64)
                    break
        return bytes(body)

    # ---- Requests of the supervisor's -----------------------------------------------------------

    def _act(self, body: Json, data: memoryview) -> None:
        acts = {
            "allow": self._allow, "image": self._image, "put": self._put, "take": self._take,
            "release": self._release,
        }  # fmt: skip
        if body["op"] not in acts:
            raise Malformed("a request is unknown")
        acts[body["op"]](body, data)

    def _allow(self, body: Json, _: memoryview) -> None:
        seed = _int(body, "schedule_seed")
        self._ask({"op": "allow", "files": {}, "schedule_seed": seed})

    def _image(self, body: Json, _: memoryview) -> None:
        """The image itself on the architecture for which it was compiled, otherwise its PTX."""
        module = _int(body, "module") & 0xFFFFFFFF
        offset, image = self._images[module] if module in self._images else (0, b"")
        if self.device.capability == recording.ARCHITECTURE:
            command = struct.pack("<QII", offset, module, 0) + b"images\0"
            self._command(Command(recording.LOAD_MODULE, command + bytes(-len(command) % 16)))
            return
        ptx = recording.ptx_of(image) or b""
        target = b".target sm_%d" % self.device.capability
        text = re.sub(rb"(?m)^\.target sm_\d+a?", target, ptx)
        for at in range(0, len(text), _TEXT_PART):
            part = text[at : at + _TEXT_PART]
            is_last = at + len(part) == len(text)
            head = struct.pack("<III", module, len(part), is_last)
            self._command(Command(recording.LOAD_TEXT, head + part))
            if not is_last:
                self._expect(None)

    def _put(self, body: Json, data: memoryview) -> None:
        """Places the inputs' bytes at their recorded address."""
        trees, nbytes = body.get("trees"), _int(body, "nbytes")
        nodes = recording.nodes_of(trees)
        if not 0 < nbytes <= recording.BYTES_MAX:
            raise Malformed("a region is too large")
        file = os.memfd_create("inputs", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, nbytes)
            at = 0
            for node in nodes:
                extent = region.extent_of(node)
                os.pwrite(file, data[at : at + extent], _int(node, "offset"))
                node["region_bytes"] = nbytes
                at += extent
            question = {"op": "put", "trees": trees, "is_call": body.get("is_call") is True}
            put = self.device.answer(Question(question, [file]))
        finally:
            os.close(file)
        if put.body["address"] != body.get("address"):
            raise Refusal("unsupported", "the device has no room for the inputs at their address")

    def _take(self, body: Json, data: memoryview) -> None:
        outputs, buffers = body.get("outputs"), body.get("buffers")
        if not isinstance(outputs, dict) or not isinstance(buffers, list):
            raise Malformed("outputs are of another form")
        places = [
            (_int(node, "offset"), _int(node, "nbytes"))
            for node in recording.nodes_of([outputs, *(entry["tree"] for entry in buffers)])
        ]
        question = {"op": "take", "outputs": outputs, "buffers": buffers}
        taken = self.device.answer(Question(question))
        for descriptor in taken.descriptors:
            os.close(descriptor)
        got = b"".join(self.device.read(*place) for place in places)
        self.counts["calls"] += 1
        named = [("output", outputs), *((str(one["name"]), one["tree"]) for one in buffers)]
        at = 0
        for name, tree in named:
            sizes = [int(node["nbytes"]) for node in recording.nodes_of([tree])]
            end = at + sum(sizes)
            self._compare(f"call {self.counts['calls']}, {name}", tree, (data[at:end], got[at:end]))
            at = end

    def _compare(self, where: str, tree: Json, values: tuple[memoryview, bytes]) -> None:
        sizes = [int(node["nbytes"]) for node in recording.nodes_of([tree])]
        if not sizes:
            return
        self.counts["outputs"] += 1
        if bytes(values[0]) == values[1]:
            self.counts["equal"] += 1
            return
        expected, got = (_value(tree, one, sizes) for one in values)
        for check in self.comparer.failures(expected, got, None):
            self.differences.append(f"{where}: {check['problem']}: {check['detail']}")

    def _release(self, body: Json, _: memoryview) -> None:
        self._ask({"op": "release", "address": _int(body, "address")})

    def _ask(self, body: Json) -> None:
        self.device.answer(Question(body))


def _int(body: Any, name: str) -> int:
    value = body.get(name) if isinstance(body, dict) else None
    if type(value) is not int or not 0 <= value < 2**63 and name != "schedule_seed":
        raise Malformed(f"{name} is no number")
    return value % 2**64


def _value(tree: Json, data: memoryview | bytes, sizes: list[int]) -> Any:
    """The value of a tree whose tensors are consecutive."""
    spaced, offsets, at = bytearray(), [], 0
    for size in sizes:
        offsets.append(len(spaced))
        spaced += data[at : at + size]
        spaced += bytes(-len(spaced) % _ALIGNMENT)
        at += size
    return region.unpack(tree, Bytes(spaced), offsets=offsets)


def replay(device: Device, data: bytes, tolerances: dict[str, float]) -> Json:
    """The response to `replay`, without the device's findings."""
    table = {
        **TOLERANCES,
        "float32": tolerances["tolerance_fp32"],
        "float16": tolerances["tolerance_half"],
        "bfloat16": tolerances["tolerance_half"],
    }
    run = Replay(device, Comparer(table))
    run.run(recording.decompressed(data))
    return {
        **run.counts,
        "differences": [text[:300] for text in run.differences[:TEXTS_MAX]],
        "errors": run.errors[:TEXTS_MAX],
    }
