# SPDX-License-Identifier: Apache-2.0
"""Makes a text in a forked process, so that a failure there cannot end or delay this process.

After a crash, an endless loop or a lack of memory there, the caller gets "", after `WALL_S` at
most. The fork cannot use a device, and its changes (generators, memory) end with it. A fork of a
process that has imported torch costs about 10 ms.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import torch

CPU_S = 4
WALL_S = 6.0
MORE_BYTES = 1 << 30  # The fork may allocate this much.
TEXT_BYTES_MAX = 4096


def text_from_fork(make: Callable[[], str]) -> str:
    """The result of `make` in a fork of this process; "" if it fails or there is no memory."""
    if not _has_room():
        return ""
    try:
        read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        child = os.fork()
    except OSError:  # The sandbox refuses forks, or its process limit is reached.
        os.close(read_end)
        os.close(write_end)
        return ""
    if child == 0:
        _run(make, write_end)
    os.close(write_end)
    try:
        return _read(read_end, time.monotonic() + WALL_S).decode("utf-8", "replace")
    finally:
        os.close(read_end)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _has_room() -> bool:
    """True if this process's memory limit permits a fork: the supervisor counts shared pages
    twice.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit == resource.RLIM_INFINITY:
        return True
    held = _bytes_of("RssAnon") + _bytes_of("RssShmem")
    return 2 * held + MORE_BYTES <= limit


def _bytes_of(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    return 0


def _run(make: Callable[[], str], write_end: int) -> NoReturn:
    with contextlib.suppress(BaseException):
        torch.set_num_threads(1)  # A fork has no pool threads and would wait for them.
        gc.disable()  # Garbage may belong to a device.
        _limit(resource.RLIMIT_CPU, CPU_S)
        _limit(resource.RLIMIT_DATA, _bytes_of("VmData") + MORE_BYTES)
        _limit(resource.RLIMIT_CORE, 1)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, WALL_S)  # The parent may be gone.
        _keep_only(write_end)
        os.write(write_end, make().encode()[:TEXT_BYTES_MAX])
    os._exit(0)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _keep_only(descriptor: int) -> None:
    """Closes all descriptors but one: the fork must not write to the parent's channel and
    output.
    """
    null = os.open("/dev/null", os.O_RDWR)
    for other in (int(name) for name in os.listdir("/proc/self/fd")):
        if other <= 2:
            os.dup2(null, other)
        elif other not in (descriptor, null):
            with contextlib.suppress(OSError):
                os.close(other)


def _read(descriptor: int, deadline: float) -> bytes:
    """Everything that the fork writes until its end; nothing if that is too late."""
    read = b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left)[0]:
            break
        block = os.read(descriptor, TEXT_BYTES_MAX)
        read += block
        if not block:
            return read
    return b""
