# SPDX-License-Identifier: Apache-2.0
"""MooreEval's times of calls that are a single kernel, beside CUPTI's in another process.

    python3 tools/gpu/beside_cupti.py [--artifacts DIR] [--verdicts FILE] [CANDIDATE ...]

MooreEval measures first, unless --verdicts names what gpu_test.py --keep wrote. Then one process of
plain PyTorch runs each candidate and its task's eager model under torch.profiler, which takes the
times of kernels from CUPTI. Its rounds are like MooreEval's bursts: the L2 cache is flushed, then
call follows call, each on its own copy of the inputs. What is compared with MooreEval's time of a
call, which is a burst's share, is the mean of a round's kernels (the median of the rounds); both
models count, as far as a call of theirs is one kernel. The mean of the middle half, without the
slowest and the fastest calls, is shown beside it.
"""

from __future__ import annotations

import copy
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import measured
import plain
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
    "its middle us",
    "its spread %",
    "off %",
)
BAR = 0.02
CALLS_MAX = 100  # A round,
CALLS_BYTES = 1 << 30  # which may have so many for inputs and outputs.
CALLS_ALL = 600  # Of all rounds together, but a few rounds at least:
ROUNDS_MIN = 4
FLUSH_FLOATS = 64 << 20  # 256 MiB.


# ---- In a process of their own ------------------------------------------------------------------


def measure(models: plain.Models) -> Json:
    """Of both models: launches a call, and how long one takes by CUPTI."""
    models_of = {"eager": models.eager, "own": models.own}
    return {arm: kernels_of(model, models.inputs) for arm, model in models_of.items()}


def kernels_of(model: Callable[..., object], inputs: list[Any]) -> Json:
    import torch

    first = model(*copy.deepcopy(inputs))
    nbytes = plain.num_bytes(inputs) + plain.num_bytes([first])
    copies = [copy.deepcopy(inputs) for _ in range(num_calls(nbytes))]
    flushed = torch.empty(FLUSH_FLOATS, device="cuda")
    run_round(model, copies, flushed)
    rounds = [
        profiled_us(lambda: run_round(model, copies, flushed))[1:]  # Without the flush.
        for _ in range(max(ROUNDS_MIN, CALLS_ALL // len(copies)))
    ]
    return {"launches": len(rounds[0]) / len(copies), **of_rounds(rounds), "rounds_us": rounds}


def of_rounds(rounds: Sequence[Sequence[float]]) -> Json:
    durations_us = [duration for one in rounds for duration in one]
    low, _, high = statistics.quantiles(durations_us, n=4)
    kernel_us = statistics.median(statistics.fmean(one) for one in rounds)
    return {
        "kernel_us": kernel_us,
        "middle_us": middle_mean(durations_us),
        "spread": (high - low) / kernel_us,
    }


def middle_mean(values: Sequence[float]) -> float:
    """Of the middle half: as robust as is needed, and finer than CUPTI's ticks of 32 ns."""
    cut = len(values) // 4
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def num_calls(nbytes: int) -> int:
    """Of a round, where a call reads and writes so much."""
    return max(1, min(CALLS_MAX, CALLS_BYTES // max(1, nbytes)))


def run_round(
    model: Callable[..., object], copies: Sequence[list[Any]], flushed: Any
) -> list[object]:
    """All outputs, so that each has memory of its own."""
    import torch

    flushed.zero_()
    torch.cuda.synchronize()
    outputs = [model(*inputs) for inputs in copies]
    torch.cuda.synchronize()
    return outputs


def profiled_us(run: Callable[[], object]) -> list[float]:
    """How long each kernel, copy and fill took, by CUPTI, in the order in which they ran."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        run()
    results = profiler.profiler.kineto_results  # type: ignore[union-attr]
    on_device = torch.autograd.DeviceType.CUDA
    events = [event for event in results.events() if event.device_type() == on_device]
    return [event.duration_ns() / 1e3 for event in sorted(events, key=lambda e: e.start_ns())]


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
        figures["middle_us"],
        100 * figures["spread"],
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
    found = plain.measure_apart([__file__], names, arguments)
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
