# SPDX-License-Identifier: Apache-2.0
"""How far a candidate's time moves from try to try, and how often it is found as fast as itself.

    python3 tools/gpu/repeatability.py [--tries 20] [--out FILE] [CANDIDATE[=TRIES] ...]

With `--baseline candidate` the verifier times a candidate against a second process of the same one,
so that the true speed-up is 1, and intervals of 95 % should contain it in 95 of 100 tries. Both
processes are new in each try. All tries are candidates of one `musacoder eval`, the first of each
candidate before the second of any, so that a slow drift of the device is in all figures alike. The
kernels that are measured by default take about 2 to 300 us.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace

import measured
from figures import half_width, share_interval, table, variation
from measured import Case, Json, cases_named

CANDIDATES = (
    "elementwise/swish",
    "softmax/softmax_rows",
    "fusion/attention",
    "convolution/conv2d_strided",
    "scan/gated_recurrence",
    "honest_spin",
)
HEADS = (
    "candidate",
    "tries",
    "time us",
    "variation %",
    "interval ± %",
    "CUPTI us",
    "time over it %",
    "contain 1",
    "off by %",
)


def interleaved(tries: Sequence[int]) -> list[tuple[int, int]]:
    """(candidate, try), both counted from 0: the first try of each, then the second of each, ..."""
    rounds = range(max(tries, default=0))
    return [(i, number) for number in rounds for i, count in enumerate(tries) if number < count]


def estimates_of(performance: Json) -> Json:
    """What is kept of one try."""
    names = ("time_us", "time_eager_us", "speedup_eager")
    kept = {name: performance[name] for name in names}
    return {**kept, "kernels_us": performance["time_kernels_us"]}


def summary(name: str, found: Sequence[Json]) -> Json:
    """Of all tries of one candidate (`estimates_of`).

    REQUIRES: at least one.
    """
    times = [one["time_us"]["median"] for one in found]
    speedups = [one["speedup_eager"] for one in found]
    time_us = statistics.median(times)
    kernels_us = statistics.median(one["kernels_us"] for one in found)
    return {
        "candidate": name,
        "tries": len(found),
        "time_us": time_us,
        "time_variation": variation(times),
        "interval_half_width": statistics.fmean(half_width(one["time_us"]) for one in found),
        "kernels_us": kernels_us,
        "over_kernels": time_us / kernels_us - 1 if kernels_us else math.nan,
        "contain_one": sum(one["low"] <= 1 <= one["high"] for one in speedups),
        "off_max": max(abs(one["median"] - 1) for one in speedups),
        "estimates": list(found),
    }


def row(figures: Json) -> list[object]:
    return [
        figures["candidate"],
        figures["tries"],
        figures["time_us"],
        100 * figures["time_variation"],
        100 * figures["interval_half_width"],
        figures["kernels_us"],
        100 * figures["over_kernels"],
        figures["contain_one"],
        100 * figures["off_max"],
    ]


def conclusion(summaries: Sequence[Json]) -> str:
    """The line over all candidates."""
    num_tries = sum(figures["tries"] for figures in summaries)
    if num_tries == 0:
        return "nothing was measured"
    hits = sum(figures["contain_one"] for figures in summaries)
    low, high = (100 * end for end in share_interval(hits, num_tries))
    share = 100 * hits / num_tries
    return f"contain 1: {hits} of {num_tries}, {share:.1f} % (95 %: {low:.1f} to {high:.1f} %)"


def with_tries(text: str, tries: int) -> tuple[str, int]:
    """The parts of NAME=TRIES, or of NAME alone."""
    name, equals, count = text.partition("=")
    return name, measured.positive(count) if equals else tries


def measure(
    arguments: argparse.Namespace, wanted: Sequence[tuple[Case, int]]
) -> list[list[Json | None]]:
    """What is kept of each try of each candidate; None where it was not measured."""
    order = interleaved([tries for _, tries in wanted])
    cases = [replace(wanted[i][0], name=f"{wanted[i][0].name} {number}") for i, number in order]
    performances = measured.performances(arguments, cases, ("--baseline", "candidate"))
    found: list[list[Json | None]] = [[] for _ in wanted]
    for (i, _), performance in zip(order, performances, strict=True):
        found[i].append(None if performance is None else estimates_of(performance))
    return found


def main() -> int:
    parser = measured.parser("How a candidate is timed against itself.", CANDIDATES)
    parser.add_argument(
        "--tries", type=measured.positive, default=20, help="of each that is not NAME=TRIES"
    )
    arguments = parser.parse_args()
    try:
        named = [with_tries(text, arguments.tries) for text in arguments.candidates]
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    cases = cases_named(parser, [name for name, _ in named])
    wanted = [(case, tries) for case, (_, tries) in zip(cases, named, strict=True)]
    summaries = []
    is_complete = True
    for (case, tries), tried in zip(wanted, measure(arguments, wanted), strict=True):
        estimates = [one for one in tried if one is not None]
        is_complete &= len(estimates) == tries
        if estimates:
            summaries.append(summary(case.name, estimates))
    print(table(HEADS, [row(figures) for figures in summaries]))
    print(conclusion(summaries))
    measured.write(arguments.out, summaries)
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
