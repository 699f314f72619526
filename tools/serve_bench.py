#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts a second through `musacoder serve`, its verifier replaced by one that answers at once.

python tools/serve_bench.py [--seconds 10] [--connections 32] [--answer-bytes 4000]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).resolve().parent.parent
TASK = "class Model:\n    pass\n" + "# ...\n" * 200


async def ask(
    session: aiohttp.ClientSession, url: str, body: dict[str, Any], until: float
) -> list[float]:
    times = []
    while time.monotonic() < until:
        start = time.monotonic()
        async with session.post(url + "/v1/evaluate", json=body) as response:
            reply = await response.json()
            assert response.status == 200 and reply["reward"] == 1.0, reply
        times.append(time.monotonic() - start)
    return times


async def measure(url: str, seconds: float, connections: int, answer_bytes: int) -> list[float]:
    body = {"task": TASK, "answer": "x" * answer_bytes}
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(connector=connector) as session:
        until = time.monotonic() + seconds
        each = [ask(session, url, body, until) for _ in range(connections)]
        return [one for times in await asyncio.gather(*each) for one in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--answer-bytes", type=int, default=4000)
    arguments = parser.parse_args()
    server = [
        sys.executable,
        str(ROOT / "python/musacoder/server/__main__.py"),
        "--port",
        "0",
        "--",
    ]
    judge = [sys.executable, str(ROOT / "tests/serve/noop_judge.py")]
    with subprocess.Popen([*server, *judge], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        size = (arguments.connections, arguments.answer_bytes)
        asyncio.run(measure(url, 1, *size))  # Warm-up.
        start = time.monotonic()
        times = sorted(asyncio.run(measure(url, arguments.seconds, *size)))
        taken = time.monotonic() - start
        process.terminate()
    p99 = times[len(times) * 99 // 100]
    print(
        f"{len(times) / taken:.0f} verdicts a second, {arguments.connections} connections; "
        f"median {1000 * statistics.median(times):.1f} ms, p99 {1000 * p99:.1f} ms, "
        f"worst {1000 * times[-1]:.1f} ms"
    )


if __name__ == "__main__":
    main()
