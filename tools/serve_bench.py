#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts a second through `musacoder serve`, its verifier replaced by one that answers at once.

    python tools/serve_bench.py [--seconds 10] [--connections 32] [--answer-bytes 4000]

Also reports the processor time of a verdict, by process, which is much the same on a machine that
others use.  The requests come from a client without any library, which costs little itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVER = [sys.executable, str(ROOT / "python/musacoder/server/__main__.py"), "--port", "0"]
JUDGE = [sys.executable, str(ROOT / "tests/serve/noop_judge.py")]
TASK = "class Model:\n    pass\n" + "# ...\n" * 200


def request_bytes(port: int, answer_bytes: int) -> bytes:
    body = json.dumps({"task": TASK, "answer": "x" * answer_bytes}).encode()
    head = f"POST /v1/evaluate HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Asker(asyncio.Protocol):
    """One connection, on which a request follows each reply until the time is over."""

    def __init__(self, request: bytes, until: float, ended: asyncio.Future[list[float]]) -> None:
        self._request = request
        self._until = until
        self._ended = ended
        self._data = b""
        self._times: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._start = time.monotonic()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.partition(b"Content-Length: ")[2].split(b"\r", 1)[0]):
            return
        assert head.startswith(b"HTTP/1.1 200") and b'"reward": 1.0' in body, self._data
        now = time.monotonic()
        self._times.append(now - self._start)
        self._data = b""
        if now < self._until:
            self._ask()
            return
        self._transport.close()
        self._ended.set_result(self._times)


async def measure(port: int, seconds: float, connections: int, answer_bytes: int) -> list[float]:
    loop = asyncio.get_running_loop()
    request, until = request_bytes(port, answer_bytes), time.monotonic() + seconds
    ends: list[asyncio.Future[list[float]]] = [loop.create_future() for _ in range(connections)]
    for end in ends:
        await loop.create_connection(
            lambda end=end: Asker(request, until, end), "127.0.0.1", port  # type: ignore[misc]
        )
    return [one for times in await asyncio.gather(*ends) for one in times]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--answer-bytes", type=int, default=4000)
    arguments = parser.parse_args()
    command = [*SERVER, "--", *JUDGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        pids = {"server": process.pid, "judge": child_of(process.pid), "client": os.getpid()}
        size = (arguments.connections, arguments.answer_bytes)
        asyncio.run(measure(port, 1, *size))  # Warm-up.
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        start = time.monotonic()
        times = sorted(asyncio.run(measure(port, arguments.seconds, *size)))
        taken = time.monotonic() - start
        spent = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
        process.terminate()
    p99 = times[len(times) * 99 // 100]
    print(
        f"{len(times) / taken:.0f} verdicts a second, {arguments.connections} connections; "
        f"median {1000 * statistics.median(times):.1f} ms, p99 {1000 * p99:.1f} ms, "
        f"worst {1000 * times[-1]:.1f} ms"
    )
    each = ", ".join(f"{name} {1000 * s / len(times):.3f}" for name, s in spent.items())
    print(f"ms of processor time a verdict: {each}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
