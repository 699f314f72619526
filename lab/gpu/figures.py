# SPDX-License-Identifier: Apache-2.0
"""Figures about measurements, and tables of them. No torch, no clock, no files."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

_NORMAL_95 = 1.959964


def variation(values: Sequence[float]) -> float:
    """The coefficient of variation: standard deviation (n − 1) over mean; nan below two values."""
    if len(values) < 2:
        return math.nan
    return statistics.stdev(values) / statistics.fmean(values)


def half_width(estimate: Mapping[str, float]) -> float:
    """Half the width of a figure's interval, as a share of its median."""
    return (estimate["high"] - estimate["low"]) / 2 / estimate["median"]


def share_interval(num_hits: int, num_tries: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson's): it stays sensible near 0 and 1.

    REQUIRES: num_tries > 0.
    """
    share, z2 = num_hits / num_tries, _NORMAL_95**2
    middle = share + z2 / (2 * num_tries)
    spread = _NORMAL_95 * math.sqrt(
        share * (1 - share) / num_tries + z2 / (4 * num_tries * num_tries)
    )
    scale = 1 + z2 / num_tries
    return (middle - spread) / scale, (middle + spread) / scale


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with columns of the least width; texts are on the left, numbers on the right."""
    texts = [list(heads), *([_text(value) for value in row] for row in rows)]
    widths = [max(len(line[i]) for line in texts) for i in range(len(heads))]
    is_text = [any(isinstance(row[i], str) for row in rows) for i in range(len(heads))]
    lines = []
    for line in texts:
        cells = [
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(line, widths, is_text, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _text(value: object) -> str:
    """A text of a cell; a measurement has four digits."""
    return f"{value:#.4g}".rstrip(".") if isinstance(value, float) else str(value)
