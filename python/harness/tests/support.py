# SPDX-License-Identifier: Apache-2.0
"""A supervisor in Python, for tests: starts a zygote and drives its children."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.judge.shapes import Options
from harness.worker import region, wire

HARNESS = Path(__file__).resolve().parent.parent
PR_SET_CHILD_SUBREAPER = 36


class Child:
    """One child of the zygote; use as a context manager."""

    def __init__(self, channel: wire.Channel, pid: int, output: Any) -> None:
        self._channel: wire.Channel | None = channel
        self.pid = pid
        self.output = output

    def ask(self, body: wire.Json, descriptor: int | None = None) -> tuple[wire.Json, list[int]]:
        assert self._channel is not None
        self._channel.send(body, [] if descriptor is None else [descriptor])
        answer = self._channel.receive()
        return answer.body, answer.descriptors

    def printed(self) -> str:
        self.output.seek(0)
        text: str = self.output.read().decode()
        return text

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None
    ) -> None:
        self._channel = None  # Closes it, and so ends the child.
        os.waitpid(self.pid, 0)
        self.output.close()


def open_question(source: str, **options: Any) -> wire.Json:
    """An `open` request, by default with the judge's own options."""
    members = {**asdict(Options()), **options}
    return {"op": "open", "source": source, "options": members, "known": ""}


def load_question(source: str, artifacts: wire.Json | None = None) -> wire.Json:
    """A candidate process's first request, under a policy that allows no operator."""
    policy: wire.Json = {"name": "", "device_allowed": [], "host_allowed": [], "init_allowed": []}
    members = {"source": source, "artifacts": artifacts or {}, "policy": policy, "schedule_seed": 0}
    return {"op": "load", **members}


def build_question(init: wire.Json, shape: int, **more: Any) -> wire.Json:
    """The `build` request that follows the judge's response to `init`."""
    members = {name: value for name, value in init.items() if name != "ok"}
    return {"op": "build", "shape": shape, **members, **more}


class Zygote:
    """A zygote process for the given `roles`."""

    def __init__(self, *arguments: str, roles: str = "judge") -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        mine, theirs = socket.socketpair()
        command = [
            sys.executable,
            str(HARNESS / "worker/zygote.py"),
            "--channel",
            str(theirs.fileno()),
        ]
        command += ["--roles", roles]
        command += [*arguments] or ["--sandbox-lib", "off"]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        self._channel = wire.Channel(mine.detach())

    def ask(self, body: wire.Json, descriptors: list[int] | None = None) -> wire.Json:
        self._channel.send(body, descriptors or [])
        return self._channel.receive().body

    def spawn(
        self,
        role: str,
        sandbox: Any = "off",
        environment: tuple[str, ...] = (),
    ) -> Child:
        mine, theirs = socket.socketpair()
        output = tempfile.TemporaryFile()
        descriptors = [theirs.fileno(), output.fileno()]
        body = {"role": role, "sandbox": sandbox, "environment": [*environment]}
        answer = self.ask({"op": "spawn", **body}, descriptors)
        theirs.close()
        if not answer["ok"]:
            raise RuntimeError(str(answer))
        return Child(wire.Channel(mine.detach()), answer["pid"], output)

    def close(self) -> None:
        del self._channel
        self._process.wait(10)


class Zygotes:
    """One zygote for each kind of roles, as in a supervisor."""

    def __init__(self, *arguments: str) -> None:
        self.judges = Zygote(*arguments)
        self.candidates = Zygote(*arguments, roles="candidate")

    def spawn(self, role: str, sandbox: Any = "off") -> Child:
        runs_candidates = role in ("recorder", "candidate")
        zygote = self.candidates if runs_candidates else self.judges
        return zygote.spawn(role, sandbox)

    def close(self) -> None:
        self.judges.close()
        self.candidates.close()


class ZygoteTest(unittest.TestCase):
    """A test case that shares the zygotes."""

    zygote: Zygotes

    @classmethod
    def setUpClass(cls) -> None:
        cls.zygote = Zygotes()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.zygote.close()


def empty_region() -> tuple[wire.Json, int]:
    """The tree and region of no arguments."""
    return region.pack([])
