# SPDX-License-Identifier: Apache-2.0
"""MooreEval's figures beside those of triton.testing.do_bench.

    python3 tools/gpu/do_bench.py [--artifacts DIR] [--out FILE] [CANDIDATE ...]

MooreEval measures first. Then --processes more, one after the other, time the eager Model and
ModelNew of one candidate after the other, with TF32 off and inputs on the device, of the shapes
that MooreEval times too: the task's own. do_bench puts a pair of events around each call behind a
flush of the L2, so a short call's launch is in its figure.

The two speed-ups agree where their ratio is no further from 1 than do_bench's noise and half the
width of MooreEval's interval together. The noise of a model is how far apart the quantiles 0.2 and
0.8 of its calls are, as a share of the median, or copies of its inputs, if that is more: where in
memory they lie may matter. That of a speed-up is both models' added in quadrature, or how far apart
the processes are, if that is more.

do_bench's flush writes zeros, which the call has to write back before it can use the cache. With
--clean the flush reads as much again afterwards, so that nothing is left to be written back.

This script trusts the candidates, so it is no verifier.
"""

from __future__ import annotations

import contextlib
import copy
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import measured
import plain
from figures import half_width, table
from measured import Json, cases_named

CANDIDATES = (
    "elementwise/swish",
    "elementwise/gelu_tanh",
    "reduction/row_sum",
    "reduction/column_max",
    "softmax/softmax_rows",
    "normalisation/layer_norm",
    "scan/cumsum_rows",
    "matmul/tiled",
    "convolution/conv2d_strided",
    "fusion/attention",
)
HEADS = (
    "candidate",
    "do_bench: eager us",
    "own us",
    "speed-up",
    "MooreEval's",
    "ratio",
    "noise %",
    "agree",
    "its eager us",
    "own us",
    "CUPTI us",
)
COPIES = 3
COPIES_BYTES_MAX = 12 << 30
REP_MS = 250


# ---- In a process of their own ------------------------------------------------------------------


def measure(models: plain.Models) -> Json:
    """Microseconds a call of both models, and the noise."""
    figures: Json = {}
    copies = copies_of(models.inputs)
    for arm, model in (("eager", models.eager), ("own", models.own)):
        time_us, noise = do_bench_us(model, copies)
        figures[f"do_bench_{arm}_us"] = time_us
        figures[f"do_bench_{arm}_noise"] = noise
    return figures


def measure_clean(models: plain.Models) -> Json:
    with clean_flush():
        return measure(models)


def do_bench_us(model: Callable[..., object], copies: Sequence[list[Any]]) -> tuple[float, float]:
    """The median over copies of the inputs, and the noise (above)."""
    from triton.testing import do_bench  # type: ignore[import-untyped]

    found = [
        do_bench(lambda: model(*inputs), rep=REP_MS, quantiles=[0.5, 0.2, 0.8]) for inputs in copies
    ]
    middle, noise = with_noise(found)
    return 1e3 * middle, noise


def with_noise(found: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The median, and how far calls or copies are apart as a share of it.

    `found` has the quantiles 0.5, 0.2 and 0.8 of the calls on each copy.
    """
    middles = [middle for middle, _, _ in found]
    middle = statistics.median(middles)
    apart = [high - low for _, low, high in found] + [max(middles) - min(middles)]
    return middle, max(apart) / middle


@contextlib.contextmanager
def clean_flush() -> Iterator[None]:
    """Has do_bench's flush read, too, so that it leaves no lines to be written back."""
    import torch
    from triton.runtime import driver  # type: ignore[import-untyped]

    active = driver.active
    flush = active.clear_cache
    other = torch.zeros_like(active.get_empty_cache_for_benchmark())

    def flush_and_read(cache: torch.Tensor) -> None:
        flush(cache)
        other.max()

    active.clear_cache = flush_and_read
    try:
        yield
    finally:
        del active.clear_cache


def copies_of(inputs: list[Any]) -> list[list[Any]]:
    """These inputs and, as far as memory allows, copies of them elsewhere."""
    num = num_copies(plain.num_bytes(inputs))
    return [inputs, *(copy.deepcopy(inputs) for _ in range(num - 1))]


def num_copies(nbytes: int) -> int:
    return max(1, min(COPIES, COPIES_BYTES_MAX // max(1, nbytes)))


# ---- All of them --------------------------------------------------------------------------------


def speedup_of(figures: Json) -> float:
    return float(figures["do_bench_eager_us"] / figures["do_bench_own_us"])


def combined(found: Sequence[Json]) -> Json:
    """The means of some processes' figures; the noise is within a process or between them."""
    names = [name for name in found[0] if name != "candidate"]
    mean: Json = {name: statistics.fmean(one[name] for one in found) for name in names}
    within = math.hypot(mean["do_bench_eager_noise"], mean["do_bench_own_noise"])
    speedups = [speedup_of(one) for one in found]
    between = max(speedups) / min(speedups) - 1
    return {"candidate": found[0]["candidate"], **mean, "noise": max(within, between)}


def compared(figures: Json, performance: Json) -> Json:
    """Both views of one candidate; `ratio` is MooreEval's speed-up over do_bench's."""
    speedup = speedup_of(figures)
    ratio = performance["speedup_eager"]["median"] / speedup
    noise = figures["noise"]
    return {
        **figures,
        "speedup_do_bench": speedup,
        "speedup_eager": performance["speedup_eager"],
        "ratio": ratio,
        "agree": abs(ratio - 1) <= noise + half_width(performance["speedup_eager"]),
        "time_us": performance["time_us"],
        "time_eager_us": performance["time_eager_us"],
        "kernels_us": sum(kernel["time_us"] for kernel in performance["kernels"]),
        "timing": performance["timing"],
    }


def row(figures: Json) -> list[object]:
    return [
        figures["candidate"],
        figures["do_bench_eager_us"],
        figures["do_bench_own_us"],
        figures["speedup_do_bench"],
        figures["speedup_eager"]["median"],
        figures["ratio"],
        100 * figures["noise"],
        "yes" if figures["agree"] else "no",
        figures["time_eager_us"]["median"],
        figures["time_us"]["median"],
        figures["kernels_us"],
    ]


def main() -> int:
    parser = plain.parser("MooreEval beside do_bench.", CANDIDATES)
    parser.add_argument(
        "--processes", type=measured.positive, default=2, help="in which do_bench runs"
    )
    parser.add_argument("--clean", action="store_true", help="leave nothing to be written back")
    arguments = parser.parse_args()
    names: list[str] = arguments.candidates
    if arguments.here:
        what = measure_clean if arguments.clean else measure
        plain.measure_here(what, names, arguments.artifacts)
        return 0
    performances = measured.performances(arguments, cases_named(parser, names))
    command = [__file__, *(["--clean"] if arguments.clean else [])]
    processes = [plain.measure_apart(command, names, arguments) for _ in range(arguments.processes)]
    rows = [
        compared(combined([found[name] for found in processes]), performance)
        for name, performance in zip(names, performances, strict=True)
        if performance is not None and all(name in found for found in processes)
    ]
    print(table(HEADS, [row(figures) for figures in rows]))
    measured.write(arguments.out, rows)
    return 0 if len(rows) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
