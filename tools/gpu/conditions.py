# SPDX-License-Identifier: Apache-2.0
"""How a call's time depends on what the device did before, and on where its memory lies.

    python3 tools/gpu/conditions.py [--processes 4] [--artifacts DIR] [--out FILE] [CANDIDATE ...]

Each process runs each candidate and its task's eager model: after a second of rest without a pause,
then with a rest after each 20 ms, as between MooreEval's bursts, then on copies of its inputs, with
outputs elsewhere too. Each call has a pair of events. What differs here differs for every tool that
measures, by what it does between the calls and by what it has allocated.
"""

from __future__ import annotations

import copy
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
WINDOWS_S = (0.0, 0.1, 0.5, 1.0, 2.0)  # After the rest.
PLACES = 8
PLACE_S = 0.5


def measure(models: plain.Models) -> Json:
    """Medians in us, of both models, by what was before and by place."""
    arms = {"eager": models.eager, "own": models.own}
    return {arm: medians_us(model, models.inputs) for arm, model in arms.items()}


def medians_us(model: Callable[..., object], inputs: list[Any]) -> Json:
    model(*inputs)
    return {**by_history(model, inputs), **by_place(model, inputs)}


def by_history(model: Callable[..., object], inputs: list[Any]) -> Json:
    found = {}
    time.sleep(REST_S)
    calls = busy(model, inputs, rest_s=0)
    for begin, end in zip(WINDOWS_S, WINDOWS_S[1:]):
        found[f"{begin} to {end} s"] = median_between(calls, begin, end)
    time.sleep(REST_S)
    calls = busy(model, inputs, rest_s=BURST_S)
    found["with rests"] = median_between(calls, BUSY_S / 2, BUSY_S)
    return found


def by_place(model: Callable[..., object], inputs: list[Any]) -> Json:
    """With all earlier places kept, so that none comes again."""
    found = {}
    kept = []
    for place in range(PLACES):
        inputs = copy.deepcopy(inputs)
        kept.append((inputs, model(*inputs)))
        calls = busy(model, inputs, rest_s=0, busy_s=PLACE_S)
        found[f"place {place}"] = median_between(calls, 0.1, PLACE_S)
    return found


def busy(
    model: Callable[..., object], inputs: list[Any], rest_s: float, busy_s: float = BUSY_S
) -> list[tuple[float, float]]:
    """When each call began, in seconds, and how long it took, in microseconds."""
    import torch

    calls = []
    start = time.monotonic()
    while time.monotonic() - start < busy_s:
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
    parser = plain.parser("How a call's time depends on history and place.", CANDIDATES)
    parser.add_argument("--processes", type=measured.positive, default=4)
    arguments = parser.parse_args()
    names: list[str] = arguments.candidates
    if arguments.here:
        plain.measure_here(measure, names, arguments.artifacts)
        return 0
    cases_named(parser, names)
    processes = [
        plain.measure_apart([__file__], names, arguments) for _ in range(arguments.processes)
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
