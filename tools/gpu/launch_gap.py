# SPDX-License-Identifier: Apache-2.0
"""How the gap between launches differs from process to process, and what it has in common.

    python3 tools/gpu/launch_gap.py [--processes 14] [--out FILE]

Each process, one after the other, queues 200 launches of one small kernel of PyTorch behind one
that sleeps, on the default stream and on three of its own, and takes the median of nine such bursts
by a pair of events. What the processes of one kernel differ by is the gap, since the kernel is the
same; docs/timing.md, "What counts".
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import measured
from figures import table

LAUNCHES = 200
BURSTS = 9
STREAMS = 4
SLEEP_CYCLES = 12_000_000  # Some 7 ms: longer than the launches take to be queued.


def kernels() -> dict[str, Callable[[], object]]:
    """By name, what launches kernels of up to 8 us; `pair` launches two."""
    import torch

    one = torch.zeros(1, device="cuda")
    middle = torch.zeros(63_488, device="cuda")
    large = torch.zeros(1 << 20, device="cuda")
    left, right, product = (torch.randn(256, 256, device="cuda") for _ in range(3))
    rows = torch.randn(256, 512, device="cuda")
    return {
        "add 1": lambda: one.add_(1),
        "add 62 Ki": lambda: middle.add_(1),
        "add 1 Mi": lambda: large.add_(1),
        "matmul": lambda: torch.mm(left, right, out=product),
        "softmax": lambda: torch.softmax(rows, 1),
        "pair": lambda: (middle.add_(1), one.add_(1)),
    }


def burst_us(launch: Callable[[], object]) -> float:
    """Microseconds from one call to the next on the current stream."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SLEEP_CYCLES)
    begin.record()
    for _ in range(LAUNCHES):
        launch()
    end.record()
    torch.cuda.synchronize()
    return float(1e3 * begin.elapsed_time(end) / LAUNCHES)


def measure_here() -> measured.Json:
    import torch

    launches = kernels()
    streams = [torch.cuda.default_stream(), *(torch.cuda.Stream() for _ in range(STREAMS - 1))]
    for launch in launches.values():
        launch()
    torch.cuda.synchronize()
    found = {}
    for number, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            for name, launch in launches.items():
                bursts = [burst_us(launch) for _ in range(BURSTS)]
                found[f"{name}, stream {number}"] = statistics.median(bursts)
    return found


def measure_apart(path: Path) -> None:
    """In a process forked from this one, which must not have used the device."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            measured.write(path, measure_here())
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise SystemExit(f"a process ended with status {status}")


def main() -> int:
    parser = argparse.ArgumentParser(description="The gap between launches, by process.")
    parser.add_argument("--processes", type=measured.positive, default=14)
    parser.add_argument("--out", type=Path, help="write the figures as JSON to this file")
    arguments = parser.parse_args()
    import torch  # noqa: F401  Once, before all forks.

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.processes):
            path = Path(folder) / f"{number}.json"
            measure_apart(path)
            found.append(measured.read(path))
    rows = []
    for name in found[0]:
        times = [one[name] for one in found]
        rows.append([name, min(times), max(times), statistics.pstdev(times)])
    print(table(("kernel", "least us", "most us", "deviation us"), rows))
    measured.write(arguments.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
