#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `musacoder serve` bears: slow connections, wrong requests, and a long queue.

    python tools/serve_storm.py connections [--count 10000]
    python tools/serve_storm.py requests [--count 2000] [--seed 1]
    python tools/serve_storm.py waiting [--count 100000] [--answer-bytes 4000]

The verifier is the tests' own, which answers at once.  Each part prints its figures, and ends with
1 where others were not served, a wrong request got anything but 4xx, or a limit was passed.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from serve_bench import JUDGE, SERVER, TASK, child_of, cpu_seconds, request_bytes

MEMORY_MAX = 1 << 30
SLOWDOWN_MAX = 1.10
TOKEN = "sesame-sesame-sesame"
Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


@contextlib.contextmanager
def service(*options: str, token: str = "") -> Iterator[tuple[int, int]]:
    """Its port and its process."""
    environment = {**os.environ, "MUSACODER_TOKEN": token}
    command = [*SERVER, *options, "--grace", "0", "--", *JUDGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().rsplit(":", 1)[1]), process.pid
        finally:
            process.kill()


def memory_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


async def send(port: int, data: bytes, timeout_s: float = 60) -> int:
    """The status of the reply; 0 where the connection was closed without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        with contextlib.suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
        line = await asyncio.wait_for(reader.readline(), timeout_s)
        return int(line.split()[1]) if line else 0
    except ConnectionError:
        return 0
    finally:
        writer.close()


# Connections.


async def hold(port: int, data: bytes, drips: bool) -> tuple[float, int]:
    """The seconds until the service ends a connection that goes no further, and the status."""
    start = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        while True:
            try:
                line = await asyncio.wait_for(reader.readline(), 3 if drips else 100)
                status = int(line.split()[1]) if line else 0
                return time.monotonic() - start, status
            except asyncio.TimeoutError:
                writer.write(b"a")
    except ConnectionError:
        return time.monotonic() - start, 0
    finally:
        writer.close()


async def ask_others(port: int, until: asyncio.Event) -> list[float]:
    times = []
    while not until.is_set():
        start = time.monotonic()
        assert await send(port, request_bytes(port, 1000)) == 200
        times.append(time.monotonic() - start)
        await asyncio.sleep(0.02)
    return times


async def connections(count: int) -> bool:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with service() as (port, pid):
        whole = request_bytes(port, 1000)
        kinds = {
            "silent": (b"", False),
            "half a header": (whole[:60], False),
            "a byte each 3 s": (whole[:30], True),
            "half a body": (whole[:-500], False),
        }
        ended = asyncio.Event()
        others = asyncio.create_task(ask_others(port, ended))
        held: dict[str, list[asyncio.Task[tuple[float, int]]]] = collections.defaultdict(list)
        for i in range(count):
            name = list(kinds)[i % len(kinds)]
            held[name].append(asyncio.create_task(hold(port, *kinds[name])))
            if i % 100 == 99:
                await asyncio.sleep(0.01)
        await asyncio.sleep(2)
        memory = memory_bytes(pid)
        for name, tasks in held.items():
            found = await asyncio.gather(*tasks)
            statuses = dict(collections.Counter(status for _, status in found))
            worst = max(seconds for seconds, _ in found)
            print(f"{len(found)} of {name}: all ended within {worst:.0f} s, statuses {statuses}")
        ended.set()
        times = sorted(await others)
    print(
        f"others meanwhile: {len(times)} verdicts, none failed, median "
        f"{1000 * statistics.median(times):.0f} ms, worst {1000 * times[-1]:.0f} ms; "
        f"memory {memory >> 20} MiB; load {os.getloadavg()[0]:.1f}"
    )
    return True


# Requests.


def wrong_requests(port: int, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    draw = random.Random(seed)
    host = f"Host: 127.0.0.1:{port}\r\n"
    token = f"Authorization: Bearer {TOKEN}\r\n"
    kind = "Content-Type: application/json\r\n"
    good = json.dumps({"task": TASK, "answer": "yes"}).encode()

    def post(headers: str, body: bytes, size: int | None = None) -> bytes:
        length = len(body) if size is None else size
        head = f"POST /v1/evaluate HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n"
        return head.encode() + body

    fixed = {
        "no token": post(host + kind, good),
        "a wrong token": post(host + kind + token.replace("sesame", "Sesame"), good),
        "another origin": post(host + kind + token + "Origin: https://example.org\r\n", good),
        "another host": post("Host: example.org\r\n" + kind + token, good),
        "text/plain": post(host + token + "Content-Type: text/plain\r\n", good),
        "a header of 1 MiB": post(host + kind + token + f"X: {'x' * (1 << 20)}\r\n", good),
        "a path of 1 MiB": f"GET /{'x' * (1 << 20)} HTTP/1.1\r\n{host}\r\n".encode(),
        "100,000 headers": post(host + "X: y\r\n" * 100_000, good),
        "a body of 64 GiB": post(host + kind + token, good, 1 << 36),
        "a body of 80 MiB": post(host + kind + token, b" " * (80 << 20)),
        "a negative length": post(host + kind + token, good, -1),
        "two lengths": post(host + kind + token + "Content-Length: 3\r\n", good),
        "length and chunks": post(host + kind + token + "Transfer-Encoding: chunked\r\n", good),
        "brackets": post(host + kind + token, b"[" * (4 << 20)),
        "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "no method": b"\r\n\r\n\r\n",
    }
    yield from fixed.items()
    for _ in range(count):
        yield "random bytes", draw.randbytes(draw.randrange(1, 4000)) + b"\r\n\r\n"
        data = bytearray(post(host + kind + token, good[: draw.randrange(len(good))]))
        for _ in range(draw.randrange(1, 6)):
            data[draw.randrange(data.index(b"\r\n\r\n"))] = draw.randrange(256)
        yield "a changed head, a cut body", bytes(data)


async def requests(count: int, seed: int) -> bool:
    found: dict[str, collections.Counter[int]] = collections.defaultdict(collections.Counter)
    with service(token=TOKEN) as (port, pid):
        whole = request_bytes(port, 10)
        good = whole.replace(b"\r\n\r\n", f"\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode(), 1)
        for name, data in wrong_requests(port, count, seed):
            found[name][await send(port, data, 80)] += 1
        assert await send(port, good) == 200, "a good request is served afterwards"
        memory = memory_bytes(pid)
    is_right = True
    for name, statuses in found.items():
        print(f"{name}: {dict(statuses)}")
        is_right &= all(status == 0 or 400 <= status < 500 for status in statuses)
    print(f"a good request is served afterwards; memory {memory >> 20} MiB")
    return is_right


# Waiting.


async def accept(port: int, count: int, answer_bytes: int, connections_max: int = 64) -> None:
    request = request_bytes(port, answer_bytes)
    request = request.replace(b"/v1/evaluate ", b"/v1/evaluate?wait_ms=0 ", 1)
    left = iter(range(count))

    async def some() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith((b"HTTP/1.1 202", b"HTTP/1.1 200")), head
            size = int(head.partition(b"Content-Length: ")[2].split(b"\r", 1)[0])
            await reader.readexactly(size)
        writer.close()

    await asyncio.gather(*(some() for _ in range(connections_max)))


async def figures(port: int) -> tuple[int, int]:
    """Questions that wait, and verdicts."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.partition(b"Content-Length: ")[2].split(b"\r", 1)[0])
    health = json.loads(await reader.readexactly(size))
    writer.close()
    return int(health["waiting"]), int(health["judged"])


async def drain(port: int, pid: int, count: int) -> tuple[float, float]:
    """Verdicts a second of processor time of the service, and a second, over `count` verdicts."""
    _, first = await figures(port)
    start, cpu = time.monotonic(), cpu_seconds(pid)
    judged = first
    while judged < first + count:
        await asyncio.sleep(0.05)
        _, judged = await figures(port)
    done = judged - first
    return done / (cpu_seconds(pid) - cpu), done / (time.monotonic() - start)


async def waiting(count: int, answer_bytes: int) -> bool:
    """The queue is filled while the verifier is stopped, and drained in ten parts."""
    with tempfile.TemporaryDirectory() as folder:
        with service("--state", folder, "--queue", "1000000") as (port, pid):
            judge = child_of(pid)
            await accept(port, 2000, answer_bytes)  # Warm-up.
            os.kill(judge, signal.SIGSTOP)
            start = time.monotonic()
            await accept(port, count, answer_bytes)
            taken = time.monotonic() - start
            memory = memory_bytes(pid)
            print(f"{count} accepted in {taken:.0f} s, memory {memory >> 20} MiB", flush=True)
            os.kill(judge, signal.SIGCONT)
            rates = []
            for part in range(10):
                cpu, wall = await drain(port, pid, count // 10 - 100)
                rates.append(cpu)
                left, _ = await figures(port)
                print(
                    f"{left} left: {wall:.0f} verdicts a second, {cpu:.0f} a second of processor "
                    f"time of the service; load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
    slowdown = statistics.median(rates[-3:]) / statistics.median(rates[:3])
    print(f"slowdown by processor time, first three parts against the last three: {slowdown:.2f}")
    return memory <= MEMORY_MAX and slowdown <= SLOWDOWN_MAX


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["connections", "requests", "waiting"])
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--answer-bytes", type=int, default=4000)
    arguments = parser.parse_args()
    if arguments.part == "connections":
        return 0 if asyncio.run(connections(arguments.count or 10_000)) else 1
    if arguments.part == "requests":
        return 0 if asyncio.run(requests(arguments.count or 2000, arguments.seed)) else 1
    return 0 if asyncio.run(waiting(arguments.count or 100_000, arguments.answer_bytes)) else 1


if __name__ == "__main__":
    sys.exit(main())
