#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much a candidate's time varies, and how often it is found as fast as itself.

    python3 lab/gpu/repeatability.py [--tries 20] [--out FILE] [CANDIDATE ...]

With `--baseline candidate` the verifier times a candidate against a second process of the same one,
so that the true speed-up is 1, and intervals of 95 % should contain it in 95 of 100 tries. Both
processes are new in each try. All tries are candidates of one `musacoder eval`, the first of each
candidate before the second of any, so that a slow drift of the device is in all figures alike. The
kernels that are measured by default take about 2 to 300 us.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from figures import half_width, share_interval, table, variation

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from corpus_sets import case_named  # noqa: E402
from expectation import Json, told_by  # noqa: E402
from judging import Judge, end_with_children  # noqa: E402

# Correctness has tests of its own: one trial is enough to let a candidate be timed.
OPTIONS = ("--backend", "cuda", "--trials", "1", "--no-shapes", "--baseline", "candidate")
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
    "contain 1",
    "off by %",
)


def row(name: str, tried: Sequence[Json]) -> list[Any]:
    """A row under HEADS from a verdict's `performance` in each try.

    REQUIRES: at least one.
    """
    times = [one["time_us"]["median"] for one in tried]
    return [
        name,
        len(tried),
        statistics.median(times),
        100 * variation(times),
        100 * statistics.fmean(half_width(one["time_us"]) for one in tried),
        sum(contains_one(one) for one in tried),
        100 * max(abs(one["speedup_eager"]["median"] - 1) for one in tried),
    ]


def contains_one(performance: Json) -> bool:
    return bool(performance["speedup_eager"]["low"] <= 1 <= performance["speedup_eager"]["high"])


def conclusion(hits: int, num_tries: int) -> str:
    """The line over all candidates."""
    if num_tries == 0:
        return "nothing was measured"
    low, high = (100 * end for end in share_interval(hits, num_tries))
    share = 100 * hits / num_tries
    return f"contain 1: {hits} of {num_tries}, {share:.1f} % (95 %: {low:.1f} to {high:.1f} %)"


def main() -> int:
    parser = argparse.ArgumentParser(description="How a candidate is timed against itself.")
    parser.add_argument("--musacoder", default=str(ROOT / "build/dev/bin/musacoder"))
    parser.add_argument("--jobs", type=int, default=4, help="candidates made ready at once")
    parser.add_argument("--tries", type=int, default=20, help="of each candidate")
    parser.add_argument("--limit", type=float, help="seconds; what is not done by then is missing")
    parser.add_argument("--out", type=Path, help="write each try's performance as JSON")
    names = "names in the corpus: family/name, kernelbench:1/19, or a case of tests/corpus/gpu"
    parser.add_argument("candidates", nargs="*", default=list(CANDIDATES), help=names)
    arguments = parser.parse_args()
    try:
        cases = [case_named(name) for name in arguments.candidates]
    except LookupError as error:
        parser.error(str(error))
    end_with_children()
    tries = [
        replace(case, name=f"{case.name} {i}") for i in range(arguments.tries) for case in cases
    ]
    judge = Judge(arguments.musacoder, arguments.jobs, OPTIONS, arguments.limit)
    found: dict[str, list[Json]] = {case.name: [] for case in cases}
    for one, result in zip(tries, judge.results(tries), strict=True):
        outcome: Json = result["verdict"]["outcome"] if result else {"kind": "not judged in time"}
        if "performance" in outcome:
            found[one.name.rsplit(" ", 1)[0]].append(outcome["performance"])
        else:
            print(
                f"{one.name}: not measured: {outcome['kind']} {told_by(outcome) if result else ''}"
            )
    measured = [one for tried in found.values() for one in tried]
    print(table(HEADS, [row(name, tried) for name, tried in found.items() if tried]))
    print(conclusion(sum(map(contains_one, measured)), len(measured)))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if len(measured) == len(tries) else 1


if __name__ == "__main__":
    sys.exit(main())
