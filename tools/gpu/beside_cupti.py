# SPDX-License-Identifier: Apache-2.0
"""MooreEval's times of calls that are a single kernel, beside CUPTI's in another process.

    python3 tools/gpu/beside_cupti.py [--artifacts DIR] [--verdicts FILE] [CANDIDATE ...]

MooreEval measures first, unless --verdicts names what gpu_test.py --keep wrote. Then --processes of
plain PyTorch run each candidate and its task's eager model under torch.profiler, which takes the
times of kernels from CUPTI. Its rounds are like MooreEval's bursts: each call has inputs of its own
with other values than in the round before, the L2 cache is flushed, another process uses the device
(neighbour.py says why), and the calls are queued behind a kernel that waits, so that one follows
the other. What is compared with MooreEval's time of a call, which is a burst's share, is the mean
of a round's kernels; of the rounds' means, that of the middle half, of all processes, so that a
disturbed round does not count. Both models count, as far as a call of theirs is one kernel.

The profiler's mode of CUPTI makes kernels of very many blocks longer. Those of LONG_US and more are
measured again in CUPTI's other mode, which adds 2 us to each kernel, and compared with that
(serial_cupti.py).

Two columns tell by how much CUPTI's own figure differs: from round to round (how far the middle
half lies apart), and from place to place (how far the tenths of a round lie apart, each over all
rounds: a call's inputs lie in one place in all rounds of a process). Two others tell what the
profiler changes: a call's share of the time between two events around a round, where the round is
not traced, and where it is. For long kernels both are the kernel's time, unless tracing makes it
longer.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import measured
import neighbour
import plain
import serial_cupti
from figures import half_width, table
from measured import Json, cases_named

CANDIDATES = ("elementwise/mish", "fusion/attention", "convolution/conv2d_strided")
HEADS = (
    "candidate",
    "model",
    "MooreEval us",
    "interval %",
    "gap us",
    "CUPTI us",
    "its mode",
    "its rounds %",
    "its places %",
    "untraced us",
    "traced us",
    "off %",
)
BAR = 0.02
LONG_US = 500.0  # Of which the 2 us that the serialising mode adds are less than half a percent.
CALLS_MAX = 400  # A round,
CALLS_BYTES = 4 << 30  # which may have so many for inputs and outputs.
NUM_ROUNDS = 17
NUM_PLACES = 10  # Tenths of a round.
FLUSH_FLOATS = 64 << 20  # 256 MiB.
QUEUE_CYCLES = 2_000_000  # Some 1 ms, in which the host queues a round,
QUEUE_CYCLES_CALL = 100_000  # and 50 us for each call.


# ---- In a process of their own ------------------------------------------------------------------


def measure(models: plain.Models) -> Json:
    """Of both models: launches a call and, where it is one, how long it takes by CUPTI."""
    arms = {"eager": models.eager, "own": models.own}
    return {arm: kernels_of(model, models.draw) for arm, model in arms.items()}


def kernels_of(model: Callable[..., object], draw: Callable[[], list[Any]]) -> Json:
    import torch

    first = draw()
    nbytes = plain.num_bytes(first) + plain.num_bytes([model(*first)])
    flushed = torch.empty(FLUSH_FLOATS, device="cuda")
    launches = len(traced_round(model, [first], flushed)[0])
    if launches != 1:
        return {"launches": launches}  # Not compared; loops of launches would take minutes.
    calls = num_calls(nbytes)
    drawn = [draw() for _ in range(calls)]
    inputs = [draw() for _ in range(calls)]
    profiled, traced_us, untraced_us = [], [], []
    for number in range(1 + NUM_ROUNDS):  # The first one warms up.
        give_values(inputs, drawn, number)
        untraced_us.append(run_round(model, inputs, flushed) / calls)
        give_values(inputs, drawn, number)  # Some work in place.
        kernels, round_us = traced_round(model, inputs, flushed)
        profiled.append(kernels)
        traced_us.append(round_us / calls)
    serial = []
    if of_rounds(profiled[1:])["kernel_us"] >= LONG_US:
        for number in range(1 + NUM_ROUNDS):
            give_values(inputs, drawn, number)
            serial.append(serial_round(model, inputs, flushed))
    return {
        "launches": len(profiled[0]) / calls,
        "profiled_us": profiled[1:],
        "serial_us": serial[1:],
        "traced_us": traced_us[1:],
        "untraced_us": untraced_us[1:],
    }


def num_calls(nbytes: int) -> int:
    """Of a round, where a call reads and writes so much."""
    return max(1, min(CALLS_MAX, CALLS_BYTES // max(1, nbytes)))


def give_values(inputs: Sequence[list[Any]], drawn: Sequence[list[Any]], number: int) -> None:
    """Those of another call in each round, in the same places."""
    for call, each in enumerate(inputs):
        given = drawn[(call + number) % len(drawn)]
        for place, value in zip(plain.tensors_in(each), plain.tensors_in(given), strict=True):
            place.copy_(value)


def of_rounds(rounds: Sequence[Sequence[float]]) -> Json:
    """The middle half of the rounds' means, which is finer than CUPTI's ticks of 32 ns."""
    means = sorted(statistics.fmean(one) for one in rounds)
    cut = len(means) // 4
    middle = means[cut : len(means) - cut]
    kernel_us = statistics.fmean(middle)
    places = places_us(rounds)
    return {
        "kernel_us": kernel_us,
        "spread": (middle[-1] - middle[0]) / kernel_us,
        "places_us": places,
        "places_spread": (max(places) - min(places)) / kernel_us,
    }


def places_us(rounds: Sequence[Sequence[float]]) -> list[float]:
    """The means of the tenths of a round, each over all rounds."""
    calls = [statistics.fmean(call) for call in zip(*rounds, strict=True)]
    num = min(NUM_PLACES, len(calls))
    bounds = [len(calls) * place // num for place in range(num + 1)]
    return [statistics.fmean(calls[begin:end]) for begin, end in pairwise(bounds)]


def pooled(found: Sequence[Json]) -> Json:
    """What some processes found of one model; the rounds count alike."""
    first = found[0]
    if first["launches"] != 1:
        return first
    all_of = {
        key: [one for each in found for one in each[key]]
        for key in ("profiled_us", "serial_us", "traced_us", "untraced_us")
    }
    rounds = all_of["serial_us"] or all_of["profiled_us"]
    return {
        "launches": 1,
        "mode": "serial" if all_of["serial_us"] else "concurrent",
        **of_rounds(rounds),
        "rounds": all_of,
    }


def run_round(model: Callable[..., object], inputs: Sequence[list[Any]], flushed: Any) -> float:
    """Microseconds between two events around the calls of a round."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flushed.zero_()
    torch.cuda.synchronize()
    neighbour.use_device()
    torch.cuda._sleep(QUEUE_CYCLES + QUEUE_CYCLES_CALL * len(inputs))
    start.record()
    outputs = [model(*each) for each in inputs]  # Kept, so that each has memory of its own.
    end.record()
    torch.cuda.synchronize()
    del outputs
    return 1e3 * float(start.elapsed_time(end))


def traced_round(
    model: Callable[..., object], inputs: Sequence[list[Any]], flushed: Any
) -> tuple[list[float], float]:
    """How long each kernel, copy and fill took, by CUPTI, in the order they ran in; and the round
    by its events.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        round_us = run_round(model, inputs, flushed)
    results = profiler.profiler.kineto_results  # type: ignore[union-attr]
    on_device = torch.autograd.DeviceType.CUDA
    events = [event for event in results.events() if event.device_type() == on_device]
    events.sort(key=lambda event: event.start_ns())
    return [event.duration_ns() / 1e3 for event in events[2:]], round_us  # No flush, no wait.


def serial_round(
    model: Callable[..., object], inputs: Sequence[list[Any]], flushed: Any
) -> list[float]:
    """How long each call's kernel took by CUPTI's other mode, in the order they ran in."""
    kernels = serial_cupti.kernels_us(lambda: run_round(model, inputs, flushed))
    return kernels[-len(inputs) :]  # No wait, and no flush where that is a kernel.


# ---- All of them --------------------------------------------------------------------------------


def compared(name: str, performance: Json, plain_figures: Json) -> Iterator[Json]:
    """For each model that is a single kernel, in both processes."""
    timing = performance["timing"]
    arms = (
        ("own", performance["time_us"], timing["gap_us"]),
        ("eager", performance["time_eager_us"], timing["gap_eager_us"]),
    )
    for arm, time_us, gap_us in arms:
        found = plain_figures[arm]
        if found["launches"] != 1:
            continue
        yield {
            "candidate": name,
            "model": arm,
            "time_us": time_us,
            "gap_us": gap_us,
            "off": time_us["median"] / found["kernel_us"] - 1,
            **found,
        }


def row(figures: Json) -> list[object]:
    return [
        figures["candidate"],
        figures["model"],
        figures["time_us"]["median"],
        100 * half_width(figures["time_us"]),
        figures["gap_us"],
        figures["kernel_us"],
        figures["mode"],
        100 * figures["spread"],
        100 * figures["places_spread"],
        statistics.median(figures["rounds"]["untraced_us"]),
        statistics.median(figures["rounds"]["traced_us"]),
        100 * figures["off"],
    ]


def conclusion(found: Sequence[Json]) -> str:
    num_within = sum(abs(figures["off"]) <= BAR for figures in found)
    return f"{num_within} of {len(found)} within {100 * BAR:.0f} % of CUPTI"


def kept_performances(path: Path, names: Sequence[str]) -> list[Json | None]:
    """From what gpu_test.py kept, and a line for each that is missing."""
    found: dict[str, Json | None] = {}
    for line in path.read_text().splitlines():
        verdict = json.loads(line)["verdict"]
        sample = verdict["candidate"].partition("#")[2]
        found[sample] = verdict["outcome"].get("performance")
    for name in names:
        if found.get(name) is None:
            print(f"{name}: {path} has no timing of it")
    return [found.get(name) for name in names]


def main() -> int:
    parser = plain.parser("MooreEval beside CUPTI.", CANDIDATES)
    parser.add_argument("--verdicts", type=Path, help="kept by gpu_test.py; judge nothing")
    parser.add_argument(
        "--processes", type=measured.positive, default=1, help="in which CUPTI measures"
    )
    arguments = parser.parse_args()
    names: list[str] = arguments.candidates
    if arguments.here:
        plain.measure_here(measure, names, arguments.artifacts)
        return 0
    cases = cases_named(parser, names)
    if arguments.verdicts is not None and not arguments.verdicts.is_file():
        parser.error(f"there is no file {arguments.verdicts}")
    if arguments.verdicts is None:
        performances = measured.performances(arguments, cases)
    else:
        performances = kept_performances(arguments.verdicts, names)
    processes = [
        plain.measure_apart([__file__], names, arguments) for _ in range(arguments.processes)
    ]
    found = {
        name: {arm: pooled([each[name][arm] for each in processes]) for arm in ("eager", "own")}
        for name in names
        if all(name in each for each in processes)
    }
    rows = [
        figures
        for name, performance in zip(names, performances, strict=True)
        if performance is not None and name in found
        for figures in compared(name, performance, found[name])
    ]
    print(table(HEADS, [row(figures) for figures in rows]))
    print(conclusion(rows))
    measured.write(arguments.out, rows)
    return 0 if len(found) == len(names) and None not in performances else 1


if __name__ == "__main__":
    sys.exit(main())
