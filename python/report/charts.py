# SPDX-License-Identifier: Apache-2.0
"""The geometry of the charts, which templates/charts.html draws as SVG. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from report.document import Json

CURVE_WIDTH, CURVE_HEIGHT = 400, 220
CURVE_TICKS = 6
BINS_A_DOUBLING = 2  # The bins of speed-ups are half a doubling wide.
DOUBLINGS_MAX = 7  # Speed-ups beyond 128 times, or below a 128th, are in the last bins.
SCORE_BINS = 20  # SOL scores are from 0 to 1.


@dataclass(frozen=True)
class Curves:
    """Steps of fast_p, in a box of CURVE_WIDTH by CURVE_HEIGHT."""

    paths: list[tuple[int, str]]  # The run, and its path.
    ticks: list[tuple[float, str]]  # The axis of p.
    width: int = CURVE_WIDTH
    height: int = CURVE_HEIGHT


def curves(runs: list[Json]) -> Curves | None:
    """The curves; None if no run was timed."""
    timed = [(index, run["fast_curve"]) for index, run in enumerate(runs) if run["fast_curve"]]
    p_max = max((p for _, points in timed for p, _ in points), default=0)
    if p_max <= 0:
        return None
    paths = []
    for index, points in timed:
        steps = [f"M0 {CURVE_HEIGHT * (1 - points[0][1]):.1f}"]
        for p, share in sorted(points):
            steps.append(f"H{p / p_max * CURVE_WIDTH:.1f}V{CURVE_HEIGHT * (1 - share):.1f}")
        paths.append((index, "".join(steps)))
    step = next(s for s in _steps() if p_max / s <= CURVE_TICKS)
    ticks = [
        (n * step / p_max * CURVE_WIDTH, f"{n * step:g}") for n in range(int(p_max / step) + 1)
    ]
    return Curves(paths, ticks)


def _steps() -> Any:
    for exponent in range(-6, 300):
        yield from (one * 10.0**exponent for one in (1, 2, 5))


@dataclass(frozen=True)
class Histogram:
    """Counts in bins of one width; `marks` are positions in bins with their labels."""

    counts: list[int]
    labels: list[str]  # One a bin, for readers who point at it.
    marks: list[tuple[float, str]]
    highest: int  # The largest count of all histograms that share the scale.


def speedup_histograms(runs: list[Json], member: str) -> dict[int, Histogram]:
    """The histograms of runs with speed-ups, in bins of half a doubling, all on one scale."""
    values = {
        index: [sample[member]["value"] for sample in run["samples"] if sample[member]]
        for index, run in enumerate(runs)
    }
    places = {
        index: [_doubling(value) for value in found] for index, found in values.items() if found
    }
    if not places:
        return {}
    low = min(-1, math.floor(min(map(min, places.values()))))
    high = max(1, math.floor(max(map(max, places.values()))) + 1)
    num = (high - low) * BINS_A_DOUBLING
    edges = [2 ** (low + n / BINS_A_DOUBLING) for n in range(num + 1)]
    labels = [f"{a:.3g}× to {b:.3g}×" for a, b in zip(edges, edges[1:])]
    every = max(1, (high - low) // 4)
    marks = [
        (
            float((power - low) * BINS_A_DOUBLING),
            f"{2.0**power:g}×" if power >= 0 else f"1/{2**-power}×",
        )
        for power in range(low, high + 1)
        if power % every == 0
    ]
    counts = {
        index: _count([(place - low) * BINS_A_DOUBLING for place in found], num)
        for index, found in places.items()
    }
    return _on_one_scale(counts, labels, marks)


def _doubling(value: float) -> float:
    if value <= 0:
        return -DOUBLINGS_MAX
    return min(max(math.log2(value), -DOUBLINGS_MAX), DOUBLINGS_MAX)


def score_histograms(runs: list[Json]) -> dict[int, Histogram]:
    """The histograms of runs with SOL scores."""
    counts = {}
    for index, run in enumerate(runs):
        found = [s["sol_score"] for s in run["samples"] if s["sol_score"] is not None]
        if found:
            counts[index] = _count([score * SCORE_BINS for score in found], SCORE_BINS)
    labels = [f"{n / SCORE_BINS:g} to {(n + 1) / SCORE_BINS:g}" for n in range(SCORE_BINS)]
    marks = [(share * SCORE_BINS, f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1)]
    return _on_one_scale(counts, labels, marks)


def _count(places: list[float], num: int) -> list[int]:
    counts = [0] * num
    for place in places:
        counts[min(max(math.floor(place), 0), num - 1)] += 1
    return counts


def _on_one_scale(
    counts: dict[int, list[int]], labels: list[str], marks: list[tuple[float, str]]
) -> dict[int, Histogram]:
    highest = max((max(found) for found in counts.values()), default=0)
    return {index: Histogram(found, labels, marks, highest) for index, found in counts.items()}
