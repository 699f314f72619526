# SPDX-License-Identifier: Apache-2.0
"""How often a candidate's interval of the speed-up over itself contains 1.

    python3 tools/gpu/self_comparison.py [--tries 100] [--out FILE] [CANDIDATE ...]

With `--baseline candidate` the verifier times a candidate against a second process of the same one,
so that the true speed-up is 1, and intervals of 95 % should contain it in 95 of 100 tries.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace

import measured
from figures import share_interval, table
from measured import Case, Json, Measurements

CANDIDATES = ("elementwise/swish", "fusion/attention")
HEADS = ("candidate", "tries", "contain 1", "share", "low", "high", "median", "off by %", "width %")


def summary(name: str, tries: list[Json]) -> Json:
    """Of the estimates of one candidate's speed-up over itself.

    REQUIRES: at least one.
    """
    hits = sum(one["low"] <= 1 <= one["high"] for one in tries)
    low, high = share_interval(hits, len(tries))
    medians = [one["median"] for one in tries]
    return {
        "candidate": name,
        "tries": len(tries),
        "contain_one": hits,
        "share": hits / len(tries),
        "share_low": low,
        "share_high": high,
        "median": statistics.median(medians),
        "off_max": max(abs(median - 1) for median in medians),
        "width": statistics.fmean(one["high"] - one["low"] for one in tries),
        "estimates": tries,
    }


def row(figures: Json) -> list[object]:
    names = ("candidate", "tries", "contain_one", "share", "share_low", "share_high", "median")
    return [
        *(figures[name] for name in names),
        100 * figures["off_max"],
        100 * figures["width"],
    ]


def tried(case: Case, tries: int) -> list[Case]:
    return [replace(case, name=f"{case.name} {number}") for number in range(tries)]


def main() -> int:
    parser = measured.parser("Whether a candidate is as fast as itself.", CANDIDATES)
    parser.add_argument("--tries", type=int, default=100)
    arguments = parser.parse_args()
    measurements = Measurements(arguments, ("--baseline", "candidate"))
    summaries = []
    is_complete = True
    for case in measurements.cases:
        found = measurements.performances(tried(case, arguments.tries))
        tries = [one["speedup_eager"] for one in found if one is not None]
        is_complete &= len(tries) == arguments.tries
        if tries:
            summaries.append(summary(case.name, tries))
    print(table(HEADS, [row(figures) for figures in summaries]))
    measured.write(arguments.out, summaries)
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
