# SPDX-License-Identifier: Apache-2.0
"""How far the time of one candidate moves from run to run.

    python3 tools/gpu/repeatability.py [--runs 20] [--out FILE] [CANDIDATE ...]

Each run is a program of its own, with fresh processes for every candidate. The candidates that are
measured by default have kernels of about 2 to 300 us.
"""

from __future__ import annotations

import statistics
import sys

import measured
from figures import table, variation
from measured import Json, Measurements

CANDIDATES = (
    "elementwise/swish",
    "softmax/softmax_rows",
    "fusion/attention",
    "convolution/conv2d_strided",
    "scan/gated_recurrence",
    "honest_spin",
)
HEADS = ("candidate", "runs", "time us", "variation %", "interval %", "speed-up", "variation %")


def summary(name: str, runs: list[Json]) -> Json:
    """Of the runs of one candidate; percentages are of the median time."""
    times = [run["time_us"]["median"] for run in runs]
    widths = [(run["time_us"]["high"] - run["time_us"]["low"]) / 2 for run in runs]
    speedups = [run["speedup_eager"]["median"] for run in runs]
    return {
        "candidate": name,
        "runs": len(runs),
        "time_us": statistics.median(times),
        "time_variation": variation(times),
        "interval_half_width": statistics.fmean(widths) / statistics.median(times),
        "speedup_eager": statistics.median(speedups),
        "speedup_variation": variation(speedups),
        "times_us": times,
    }


def row(figures: Json) -> list[object]:
    return [
        figures["candidate"],
        figures["runs"],
        figures["time_us"],
        100 * figures["time_variation"],
        100 * figures["interval_half_width"],
        figures["speedup_eager"],
        100 * figures["speedup_variation"],
    ]


def main() -> int:
    parser = measured.parser("How far a candidate's time moves from run to run.", CANDIDATES)
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    measurements = Measurements(arguments)
    found: list[list[Json]] = [[] for _ in measurements.cases]
    num_missing = 0
    for _ in range(arguments.runs):
        for runs, performance in zip(found, measurements.performances(measurements.cases)):
            if performance is None:
                num_missing += 1
            else:
                runs.append(performance)
    names = [case.name for case in measurements.cases]
    summaries = [summary(name, runs) for name, runs in zip(names, found) if runs]
    print(table(HEADS, [row(figures) for figures in summaries]))
    measured.write(arguments.out, summaries)
    return 1 if num_missing else 0


if __name__ == "__main__":
    sys.exit(main())
