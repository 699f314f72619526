# SPDX-License-Identifier: Apache-2.0
"""How a call's time depends on what the device did before.

    python3 tools/gpu/settling.py [--processes 4] [--artifacts DIR] [--out FILE] [CANDIDATE ...]

Each process runs each candidate and its task's eager model: after a second of rest without a pause
for two, then for two with a rest after each 20 ms, as between MooreEval's bursts. Each call has a
pair of events. What differs here differs for every tool that measures, by what it does between the
calls.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import measured
import plain
from figures import table
from measured import Json, cases_named

CANDIDATES = ("kernelbench:1/40",)
REST_S = 1.0
BUSY_S = 2.0
BURST_S = 0.02
WINDOWS_S = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0)  # After the rest.


def measure(models: plain.Models) -> Json:
    """Medians in us, of both models: by time after a rest, and with rests between bursts."""
    arms = {"eager": models.eager, "own": models.own}
    return {arm: medians_us(model, models.inputs) for arm, model in arms.items()}


def medians_us(model: Callable[..., object], inputs: list[Any]) -> Json:
    model(*inputs)
    found = {}
    time.sleep(REST_S)
    calls = busy(model, inputs, rest_s=0)
    for begin, end in zip(WINDOWS_S, WINDOWS_S[1:]):
        found[f"{begin} to {end} s"] = median_between(calls, begin, end)
    time.sleep(REST_S)
    calls = busy(model, inputs, rest_s=BURST_S)
    found["with rests"] = median_between(calls, BUSY_S / 2, BUSY_S)
    return found


def busy(
    model: Callable[..., object], inputs: list[Any], rest_s: float
) -> list[tuple[float, float]]:
    """When each call began, in seconds, and how long it took, in microseconds."""
    import torch

    calls = []
    start = time.monotonic()
    while time.monotonic() - start < BUSY_S:
        burst = time.monotonic() - start
        pairs = []
        while time.monotonic() - start < burst + BURST_S:
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            model(*inputs)
            events[1].record()
            pairs.append(events)
            pairs[max(0, len(pairs) - 2)][1].synchronize()  # At most two ahead.
        torch.cuda.synchronize()
        calls += [(burst, 1e3 * begin.elapsed_time(end)) for begin, end in pairs]
        time.sleep(rest_s)
    return calls


def median_between(calls: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    found = [us for at, us in calls if begin <= at < end]
    return statistics.median(found) if found else math.nan


def main() -> int:
    parser = plain.parser("How a call's time depends on what the device did before.", CANDIDATES)
    parser.add_argument("--processes", type=measured.positive, default=4)
    arguments = parser.parse_args()
    names: list[str] = arguments.candidates
    if arguments.here:
        plain.measure_here(measure, names, arguments.artifacts)
        return 0
    cases_named(parser, names)
    processes = [
        plain.measure_apart([__file__], names, arguments.artifacts)
        for _ in range(arguments.processes)
    ]
    rows = [
        [name, arm, state, *(found[name][arm][state] for found in processes)]
        for name in names
        if all(name in found for found in processes)
        for arm in ("eager", "own")
        for state in processes[0][name][arm]
    ]
    heads = ("candidate", "model", "when", *(f"us, process {i}" for i in range(len(processes))))
    print(table(heads, rows))
    measured.write(arguments.out, processes)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
