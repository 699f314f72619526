# SPDX-License-Identifier: Apache-2.0
"""Runs untrusted code, each call in its own sandbox.

A call is a fork of this process that enters the sandbox of `src/sandbox` (no network, no files but
Python's, PyTorch's and the harness's, a private /tmp, limits), runs the function and writes its
result as JSON. The result is untrusted data: its size is limited, it may be anything, and its
reader checks it.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from harness.worker import sandbox, view

RESULT_BYTES_MAX = 8 << 20
_MEMORY_BYTES = 3 << 30
_WAIT_FACTOR = 6  # The limit of wall time, as a multiple of processor time.
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class _Running:
    key: Any
    child: int
    pipe: int
    deadline: float
    seconds: int
    data: bytearray
    is_late: bool = False


class Sandbox:
    """Forks of this process, which must have one thread, in sandboxes."""

    def __init__(self, library: str, jobs: int = 1) -> None:
        self._library = ctypes.CDLL(library)
        # The sandbox's first process becomes a child of this one, which ends and reaps it.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._jobs = jobs
        self._files = [*view.files_of([]), str(view.HARNESS)]
        self._files = [one for one in self._files if not one.startswith(f"{view.HARNESS}/")]

    def run(
        self, function: Callable[[Any], Any], asked: Iterable[tuple[Any, Any]], seconds: int
    ) -> Iterator[tuple[Any, Any]]:
        """(key, result) for each (key, argument), in the order of their ends.

        `seconds` is the limit of processor time. The result is {"died": why} if the process ended
        without one.
        """
        waiting = iter(asked)
        running: list[_Running] = []
        while True:
            while len(running) < self._jobs and (one := next(waiting, None)) is not None:
                running.append(self._start(function, one[0], one[1], seconds))
            if not running:
                return
            for ended in _wait(running):
                running.remove(ended)
                yield ended.key, _result(ended)

    def _start(
        self, function: Callable[[Any], Any], key: Any, argument: Any, seconds: int
    ) -> _Running:
        profile = json.dumps(
            {
                "limits": {"cpu_s": seconds, "memory_bytes": _MEMORY_BYTES, "files_max": 256},
                "only_visible": True,
                "visible": self._files,
            }
        ).encode()
        read_end, write_end = os.pipe()
        try:
            child = sandbox.fork_twice(
                lambda: sandbox.call(self._library, "mc_sandbox_unshare", profile),
                lambda _: self._run_child(profile, write_end, function, argument),
            )
        except RuntimeError as error:
            raise SystemExit(f"error: the sandbox: {error}") from None
        os.close(write_end)
        deadline = time.monotonic() + _WAIT_FACTOR * seconds
        return _Running(key, child, read_end, deadline, seconds, bytearray())

    def _run_child(
        self, profile: bytes, out: int, function: Callable[[Any], Any], argument: Any
    ) -> NoReturn:
        status = 1
        try:
            os.setsid()
            null = os.open("/dev/null", os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            sandbox.call(self._library, "mc_sandbox_enter", profile, [out])
            result = json.dumps(function(argument)).encode()
            with os.fdopen(out, "wb") as pipe:
                pipe.write(result[:RESULT_BYTES_MAX])
            status = 0
        finally:
            os._exit(status)


def _wait(running: list[_Running]) -> list[_Running]:
    """Reads available output; returns the calls that ended, ran too long or wrote too much."""
    left = min(one.deadline for one in running) - time.monotonic()
    ready = select.select([one.pipe for one in running], [], [], max(0.0, left))[0]
    ended = []
    for one in running:
        is_over = time.monotonic() >= one.deadline
        if one.pipe in ready:
            chunk = os.read(one.pipe, 1 << 16)
            one.data += chunk
            is_over = is_over or not chunk or len(one.data) > RESULT_BYTES_MAX
        if is_over:
            os.close(one.pipe)
            one.is_late = _end(one.child) >= one.seconds or time.monotonic() >= one.deadline
            ended.append(one)
    return ended


def _end(child: int) -> int:
    """Kills the process, and with it all of its namespace; returns its processor time, rounded."""
    os.kill(child, signal.SIGKILL)
    used = os.wait4(child, 0)[2]
    return round(used.ru_utime + used.ru_stime)


def _result(ended: _Running) -> Any:
    try:
        return json.loads(ended.data)
    except ValueError:
        return {"died": "it took too long" if ended.is_late else "its process ended"}


def check_single_thread() -> None:
    if len(os.listdir("/proc/self/task")) != 1:
        sys.exit("error: this process has threads, so it cannot fork")
