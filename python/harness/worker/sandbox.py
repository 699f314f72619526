# SPDX-License-Identifier: Apache-2.0
"""Children of this process in the sandbox of src/sandbox.

A child is forked twice, so that another process can become its parent and reap it:

  this process -> helper (unshares namespaces) -> child (pid 1 of its namespaces)
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from typing import Any, NoReturn


def call(library: Any, name: str, profile: bytes, keep: list[int] | None = None) -> None:
    """Calls mc_sandbox_unshare, or mc_sandbox_enter, which closes all descriptors but `keep`.

    Raises RuntimeError.
    """
    error = ctypes.create_string_buffer(1000)
    arguments: list[Any] = [profile]
    if keep is not None:
        arguments += [(ctypes.c_int * len(keep))(*keep), len(keep)]
    if getattr(library, name)(*arguments, error, len(error)):
        raise RuntimeError(f"{name}: {error.value.decode('utf-8', 'replace')}")


def fork_twice(unshare: Callable[[], None], run_child: Callable[[int], NoReturn]) -> int:
    """The pid of a new child, which runs `run_child` with the pid of its helper.

    The helper calls `unshare` first. This function returns when the child has closed the
    descriptors that it does not keep. Raises RuntimeError with the helper's error.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    helper = os.fork()
    if helper == 0:
        _run_helper(unshare, run_child, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        report = pipe.read(4096)
    os.waitpid(helper, 0)
    if len(report) != 4:
        raise RuntimeError(report.decode("utf-8", "replace") or "the child died as it was forked")
    return int(struct.unpack("<i", report)[0])


def _run_helper(
    unshare: Callable[[], None], run_child: Callable[[int], NoReturn], write_end: int
) -> NoReturn:
    """Forks the child and reports its pid, or the error."""
    try:
        unshare()
        helper = os.getpid()
        child = os.fork()
        if child == 0:
            run_child(helper)
        os.write(write_end, struct.pack("<i", child))
        os._exit(0)
    except BaseException as error:
        os.write(write_end, f"{error}".encode()[:4000])
        os._exit(1)
