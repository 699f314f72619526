# SPDX-License-Identifier: Apache-2.0
"""A recording: a candidate's commands to a device process, and the supervisor's requests.

It is a list of frames, each a kind, a number of bytes, and the bytes. The native code writes
commands, replies and errors (device/cuda/executor.h, Note); `act` adds the supervisor's requests,
in the same order. `docs/replay.md` has the format of the file around it.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.worker import region
from harness.worker.wire import Json, Refusal

COMMAND, REPLY, ERROR, ACT = 1, 2, 3, 4
BYTES_MAX = 1 << 30  # Executor::kRecordBytesMax
# Numbers of commands: Op in device/commands.h.
WRITE, READ, COPY, FILL, LOAD_MODULE, LOAD_TEXT = 3, 4, 5, 6, 7, 8
FIND_FUNCTION, FIND_VARIABLE, TENSOR_MAP, LAUNCH = 10, 11, 14, 15
ELAPSED, QUERY_STREAM, QUERY_EVENT = 23, 24, 25
LAUNCH_BYTES = 56  # The size of a Launch, which the arguments follow.
ARCHITECTURE = 90  # The newest architecture whose PTX is used: the ptx device's.

_HEADER = struct.Struct("<II")
_FAT_HEADER = struct.Struct("<IHHQ")
_FAT_ENTRY = struct.Struct("<HHIQIIHHIIIQ")  # device/ptx_driver/fat_binary.cc
_FAT_MAGIC, _PTX, _COMPRESSED = 0xBA55ED50, 1, 0x2000 | 0x8000
_LEVEL = 6
_NAMES_SHOWN = 3


class Malformed(Refusal):
    """The bytes are not a recording."""

    def __init__(self, what: str) -> None:
        super().__init__("recording", f"no recording: {what}")


def act(body: Json, data: bytes = b"") -> bytes:
    """A frame with a request of the supervisor and its attached bytes."""
    text = json.dumps(body).encode()
    nbytes = 4 + len(text) + len(data)
    if nbytes > BYTES_MAX:
        raise Refusal("unsupported", "the tensors are too large to be recorded")
    return _HEADER.pack(ACT, nbytes) + struct.pack("<I", len(text)) + text + data


def parse_act(payload: memoryview) -> tuple[Json, memoryview]:
    """Raises Malformed."""
    size = int.from_bytes(payload[:4], "little")
    if len(payload) < 4 or size > len(payload) - 4:
        raise Malformed("a request is cut short")
    try:
        body = json.loads(bytes(payload[4 : 4 + size]))
    except (ValueError, RecursionError):
        raise Malformed("a request is no JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("op"), str):
        raise Malformed("a request has no name")
    return body, payload[4 + size :]


def frames(body: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Raises Malformed."""
    at = 0
    while at < len(body):
        if len(body) - at < _HEADER.size:
            raise Malformed("its last frame is cut short")
        kind, nbytes = _HEADER.unpack_from(body, at)
        at += _HEADER.size
        if nbytes > len(body) - at or not COMMAND <= kind <= ACT:
            raise Malformed("a frame is cut short or of an unknown kind")
        yield kind, body[at : at + nbytes]
        at += nbytes


@dataclass(frozen=True)
class Command:
    """One command of the candidate."""

    op: int
    body: bytes

    @classmethod
    def parse(cls, payload: memoryview) -> Command:
        if len(payload) < 4:
            raise Malformed("a command is cut short")
        return cls(int.from_bytes(payload[:4], "little"), bytes(payload[4:]))

    def text(self, at: int) -> str:
        """The text, which ends with a zero byte, behind the fixed part."""
        return self.body[at:].partition(b"\0")[0].decode("utf-8", "replace")

    def word(self, at: int) -> int:
        return int.from_bytes(self.body[at : at + 4], "little")


def nodes_of(trees: Any) -> list[Json]:
    """The nodes of the tensors of trees, in the trees' order. Raises Malformed."""
    try:
        nodes = [node for tree in trees for node in region.tensor_nodes(tree)]
        for node in nodes:
            if type(node["nbytes"]) is not int or not 0 <= region.extent_of(node) < 2**40:
                raise ValueError
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError):
        raise Malformed("a tree is malformed") from None
    return nodes


# ---- Making one ---------------------------------------------------------------------------------


class Recorder:
    """Writes the supervisor's requests to the file to which the native code adds the other
    frames.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("recording", os.MFD_CLOEXEC)
        self._files: dict[str, str] = {}  # The candidate's own files, by their paths in its view.
        self._is_lost = False  # A frame exceeded the limit.

    def note(self, body: Json, data: bytes = b"") -> None:
        """Writes a frame; if there is no room, the recording is lost and the verdict continues."""
        try:
            frame = memoryview(act(body, data))
            while frame and not self._is_lost:
                frame = frame[os.write(self.descriptor, frame) :]
        except (OSError, Refusal):
            self._is_lost = True

    def note_outputs(self, description: Json, read: Callable[[int, int], bytes]) -> None:
        """Writes the candidate's outputs and buffers, as it describes them, with their bytes."""
        try:
            trees = [description["outputs"], *(entry["tree"] for entry in description["buffers"])]
            nodes = nodes_of(trees)
        except Malformed:  # The judge refuses these outputs, too.
            self._is_lost = True
            return
        self.note(description, b"".join(read(node["offset"], node["nbytes"]) for node in nodes))

    def allow(self, files: Mapping[str, str]) -> None:
        self._files.update(files)

    def finish(self) -> int:
        """A descriptor of the compressed recording. Raises Refusal, with a name, if a kernel or
        call cannot be replayed on another device.
        """
        size = os.fstat(self.descriptor).st_size
        if self._is_lost or size > BYTES_MAX:
            raise Refusal("unsupported", "its tensors and commands are too large to be recorded")
        notes = os.pread(self.descriptor, size, 0)
        while len(notes) < size:
            notes += os.pread(self.descriptor, size - len(notes), len(notes))
        target = os.memfd_create("compressed", os.MFD_CLOEXEC)
        packer = zlib.compressobj(_LEVEL)
        with os.fdopen(os.dup(target), "wb") as file:
            for part in self._with_images(memoryview(notes)):
                file.write(packer.compress(part))
            file.write(packer.flush())
        return target

    def close(self) -> None:
        os.close(self.descriptor)

    def _with_images(self, notes: memoryview) -> Iterator[bytes]:
        """The frames, with images in place of their files and offsets."""
        kernels = _kernels_of(notes)
        for kind, payload in frames(notes):
            command = Command.parse(payload) if kind == COMMAND else None
            if command is not None and command.op == LOAD_MODULE:
                yield self._image(command, kernels)
            else:
                yield _HEADER.pack(kind, len(payload)) + bytes(payload)

    def _image(self, command: Command, kernels: Mapping[int, list[str]]) -> bytes:
        offset, module = struct.unpack_from("<QI", command.body)
        path = command.text(16)
        if path not in self._files:
            name = os.path.basename(path)
            raise Refusal("unsupported", f"kernels of {name} cannot be replayed elsewhere")
        image = _image_at(self._files[path], offset)
        require_ptx(image, kernels.get(module, []))
        return act({"op": "image", "module": module}, image)


def _kernels_of(notes: memoryview) -> dict[int, list[str]]:
    """The names of the kernels that were looked up, by their modules."""
    found: dict[int, list[str]] = {}
    for kind, payload in frames(notes):
        if kind == COMMAND and (command := Command.parse(payload)).op == FIND_FUNCTION:
            found.setdefault(command.word(0), []).append(command.text(8))
    return found


def _image_at(path: str, offset: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(offset)
        header = file.read(_FAT_HEADER.size)
        magic, _, header_bytes, nbytes = _FAT_HEADER.unpack(header)
        if magic != _FAT_MAGIC:
            raise Refusal("unsupported", "an image that is no fat binary cannot be replayed")
        return header + file.read(header_bytes - len(header) + nbytes)


# ---- Images -------------------------------------------------------------------------------------


def require_ptx(image: bytes, kernels: list[str]) -> None:
    """Raises Refusal, with the kernels' names, if only one kind of device could run them."""
    if ptx_of(image) is None:
        names = ", ".join(kernels[:_NAMES_SHOWN]) or "no kernel that was used"
        raise Refusal("unsupported", f"the image of {names} has no PTX: it runs on its device only")


def ptx_of(image: bytes) -> bytes | None:
    """The PTX for the newest architecture up to ARCHITECTURE, if there is any."""
    if len(image) < _FAT_HEADER.size:
        return None
    magic, _, at, nbytes = _FAT_HEADER.unpack_from(image)
    best: tuple[int, bytes] | None = None
    end = min(len(image), at + nbytes)
    while magic == _FAT_MAGIC and end - at >= _FAT_ENTRY.size:
        kind, _, header_bytes, size, *_, architecture, _, _, flags = _FAT_ENTRY.unpack_from(
            image, at
        )
        if header_bytes < _FAT_ENTRY.size or size > end - at - header_bytes:
            return None
        is_ptx = kind == _PTX and not flags & _COMPRESSED and architecture <= ARCHITECTURE
        if is_ptx and (best is None or architecture > best[0]):
            text = image[at + header_bytes : at + header_bytes + size]
            best = architecture, text.partition(b"\0")[0]
        at += header_bytes + size
    return None if best is None else best[1]


def decompressed(data: bytes) -> memoryview:
    """Raises Malformed."""
    unpacker: Any = zlib.decompressobj()
    try:
        body = unpacker.decompress(data, BYTES_MAX)
    except zlib.error as error:
        raise Malformed(f"its data is not compressed as it should be ({error})") from None
    if not unpacker.eof or unpacker.unused_data:
        raise Malformed("its data is cut short, too long, or something follows it")
    return memoryview(body)
