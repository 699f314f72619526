# SPDX-License-Identifier: Apache-2.0
"""Messages between supervisor and child: framing, descriptors, and errors as data.

A message is a 4-byte little-endian length, then UTF-8 JSON; descriptors travel with its first byte.
`Channel` sends and receives them, `serve` responds to requests until the other end closes. Neither
trusts the peer: every length is bounded, and every failure of a request is a response.
"""

from __future__ import annotations

import array
import contextlib
import errno
import json
import linecache
import os
import socket
import struct
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

MESSAGE_BYTES_MAX = 16 << 20
DESCRIPTORS_MAX = 8
SEND_LIMIT_S = 20.0  # While other processes' descriptors are in flight.
TEXT_MAX = 8000  # The most characters of an exception's message.
FRAMES_MAX = 32

CANDIDATE_FILE = "candidate.py"
TASK_FILE = "task.py"
_OOM_WORDS = ("not enough memory", "can't allocate", "bad_alloc", "out of memory")
_SOURCES = {CANDIDATE_FILE: "candidate", TASK_FILE: "task"}


class ProtocolError(Exception):
    """The peer broke the protocol."""


class Refusal(Exception):
    """A request that fails, with the kind of error in the response."""

    def __init__(self, kind: str, message: str, line: int = 0) -> None:
        """`line` is a line of the candidate that no traceback frame has; 0 if there is none."""
        super().__init__(message)
        self.kind, self.line = kind, line


@dataclass(frozen=True)
class Question:
    """One message as received; the receiver owns the descriptors."""

    body: Json
    descriptors: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """The fields of a successful response, and the descriptors to send with it (closed once
    sent).
    """

    body: Json = field(default_factory=dict)
    descriptors: Sequence[int] = ()


class Channel:
    """One end of the stream socket. Owns the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, body: Json, descriptors: Sequence[int] = ()) -> None:
        # UTF-8 cannot encode a lone surrogate, and JSON must not escape it, so a "?" replaces it.
        text = json.dumps(body, allow_nan=False, ensure_ascii=False)
        payload = text.encode("utf-8", "replace")
        if len(payload) > MESSAGE_BYTES_MAX:
            raise ProtocolError(f"a message of {len(payload)} bytes is too long")
        data = struct.pack("<I", len(payload)) + payload
        rights = array.array("i", descriptors)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if descriptors else []
        sent = self._send_first(data, ancillary)
        if sent < len(data):
            self._socket.sendall(data[sent:])

    def _send_first(self, data: bytes, ancillary: list[Any]) -> int:
        """Sends the first byte; waits while too many descriptors of this user are in flight."""
        deadline = time.monotonic() + SEND_LIMIT_S
        while True:
            try:
                return self._socket.sendmsg([data], ancillary)
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def receive(self) -> Question:
        """The next message. Raises EOFError when the other end is closed between messages."""
        descriptors: list[int] = []
        header = self._read(4, descriptors)
        if not header:
            raise EOFError
        size = struct.unpack("<I", header)[0] if len(header) == 4 else MESSAGE_BYTES_MAX + 1
        if size > MESSAGE_BYTES_MAX:
            raise ProtocolError(f"a message claims {size} bytes")
        payload = self._read(size, descriptors)
        if len(payload) != size:
            raise ProtocolError("the channel closed inside a message")
        body = json.loads(payload.decode("utf-8"))
        if not isinstance(body, dict):
            raise ProtocolError("a message is not a JSON object")
        return Question(body, descriptors)

    def _read(self, size: int, descriptors: list[int]) -> bytes:
        """`size` bytes, or fewer if the stream ends; received descriptors are appended."""
        chunks = bytearray()
        space = socket.CMSG_SPACE(DESCRIPTORS_MAX * array.array("i").itemsize)
        while len(chunks) < size:
            flags = socket.MSG_CMSG_CLOEXEC
            data, ancillary, _, _ = self._socket.recvmsg(size - len(chunks), space, flags)
            for level, kind, rights in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    whole = len(rights) - len(rights) % array.array("i").itemsize
                    descriptors.extend(array.array("i", rights[:whole]))
            if not data:
                break
            chunks += data
        return bytes(chunks)


def serve(channel: Channel, answer: Callable[[Question], Answer]) -> None:
    """Responds to requests until the channel closes. This is the process boundary of every role."""
    while True:
        try:
            question = channel.receive()
        except (EOFError, ConnectionError):
            return
        _serve_one(channel, answer, question)


def _serve_one(channel: Channel, answer: Callable[[Question], Answer], question: Question) -> None:
    result = Answer()
    try:
        result = answer(question)
        body = {"ok": True, **result.body}
        channel.send(body, result.descriptors)
    except BaseException as error:  # A candidate may raise anything, SystemExit too.
        channel.send({"ok": False, "error": describe(error)})
    finally:
        for descriptor in {*question.descriptors, *result.descriptors}:
            os.close(descriptor)


def describe(error: BaseException) -> Json:
    """An exception as the Error of docs/architecture.md."""
    stage = getattr(error, "mc_stage", "")
    body: Json = {
        "kind": kind_of(error),
        "type": type(error).__name__[:200],
        "message": text_of(error)[:TEXT_MAX],
        "frames": _frames(error),
    }
    if isinstance(stage, str) and stage:
        body["stage"] = stage
    return body


def set_stage(error: BaseException, stage: str) -> None:
    """Records the stage in an exception; the innermost stage is kept."""
    if not getattr(error, "mc_stage", ""):
        try:
            error.mc_stage = stage  # type: ignore[attr-defined]
        except (AttributeError, TypeError):
            pass


def kind_of(error: BaseException) -> str:
    if isinstance(error, Refusal):
        return error.kind
    if isinstance(error, ProtocolError):
        return "protocol"
    if isinstance(error, MemoryError):
        return "oom"
    if isinstance(error, RuntimeError):
        text = text_of(error)
        if any(words in text for words in _OOM_WORDS):
            return "oom"
    return "exception"


# The end of a c10::Error's message from pybind11: the source location of TORCH_CHECK, which may be
# in another candidate's text (src/compile/canonical.h), and frames of libraries.
_BACKTRACE = "\nException raised from "


def text_of(error: BaseException) -> str:
    try:
        return str(error).partition(_BACKTRACE)[0]
    except BaseException:  # A hostile __str__.
        return "(the exception's message cannot be shown)"


def _frames(error: BaseException) -> list[Json]:
    """The frames in the candidate's or the task's own text, outermost first."""
    found: list[Json] = []
    if isinstance(error, SyntaxError) and error.filename in _SOURCES:
        text = (error.text or "").strip()[:200]
        found.append({"source": _SOURCES[error.filename], "line": error.lineno or 0, "text": text})
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if name in _SOURCES:
            text = linecache.getline(name, line).strip()[:200]
            found.append({"source": _SOURCES[name], "line": line, "text": text})
    if isinstance(error, Refusal) and error.line:
        text = linecache.getline(CANDIDATE_FILE, error.line).strip()[:200]
        found.append({"source": _SOURCES[CANDIDATE_FILE], "line": error.line, "text": text})
    return found[: FRAMES_MAX // 2] + found[FRAMES_MAX // 2 :][-FRAMES_MAX // 2 :]
