# SPDX-License-Identifier: Apache-2.0
"""The plans that the forge's texts name, and what each takes, for text_truth.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# The words of a plan and what it takes, as formulas over the sizes n, m, depth, batch and last, the
# passes over a row, and the numbers in the words. They are written here independently of the
# templates' manifests. Without "threads" the words do not determine the size of a block.
Plan = dict[str, str]
ITEM = "(?:row|output)"
ROW: Plan = {"rows": "1", "busy": "n", "lane": "(lane, 0)"}
STRIDE: Plan = {"threads": "T", "blocks": "up(n, B)", "busy": "min(n, up(n, B) * T)"}
BLOCK: Plan = {
    "rows": "1",
    "threads": "T",
    "blocks": "n",
    "busy": "n * min(m, T)",
    "lane": "(0, lane)",
}
TREE: Plan = {**BLOCK, "barriers": "passes * (log2(T) + 2)"}
WARP: Plan = {**BLOCK, "threads": "32", "busy": "n * min(m, 32)"}
ONCE: Plan = {"reads": "1 + keeps"}
SPLIT: Plan = {
    "rows": "1",
    "launches": "2",
    "threads": "128",
    "blocks": "up(n * P, 128)",
    "busy": "n * min(m, P)",
    "lane": "(lane // P, lane % P)",
}
SCAN: Plan = {"scans": "1"}


def tiles(height: str, width: str, step: str, busy: str) -> Plan:
    """A block takes `height` x `width` outputs and steps through the depth by `step`."""
    return {
        "threads": "256" if step != "T" else "T * T",
        "blocks": f"up(n, {height}) * up(m, {width}) * batch",
        "loads": f"batch * depth * (n * up(m, {width}) + m * up(n, {height}))",
        "barriers": f"2 * up(depth, {step})",
        "busy": busy,
    }


PLANS: dict[str, Plan] = {
    "one thread for each element": {"busy": "n", "lane": "(0, lane)"},
    r"a block of (?P<T>\d+) threads for each row of the output": {
        "threads": "T",
        "blocks": "n // last",
        "busy": "min(T, last) * (n // last)",
        "lane": "(0, lane if lane < last else n)",
    },
    r"(?P<U>\d+) neighbouring elements for each thread": {
        "threads": "256 // U",
        "blocks": "up(n, 256)",
        "busy": "up(n, U)",
        "lane": "(0, lane * U)",
    },
    r"a grid of (?P<X>\d+) x (?P<Y>\d+) blocks over rows and columns": {
        "threads": "X * Y",
        "blocks": "up(last, X) * up(n // last, Y)",
        "busy": "n",
    },
    r"a grid-stride loop with (?P<B>\d+) elements for each block of (?P<T>\d+)": {
        **STRIDE,
        "lane": "(0, lane)",
    },
    r"(?P<U>\d+) elements for each thread, (?P<T>\d+) apart": {
        "threads": "T",
        "blocks": "up(n, U * T)",
        "busy": "covered(n, U * T, T)",
        "lane": "(0, lane)",
    },
    r"vectors of (?P<V>\d+) elements": {
        "threads": "256",
        "blocks": "up(n, 256 * V)",
        "busy": "up(n, V)",
    },
    r"vectors of (?P<V>\d+) halves": {
        "threads": "128",
        "blocks": "up(n, 128 * V)",
        "busy": "up(n, V)",
    },
    r"a grid-stride loop over vectors of (?P<V>\d+) with (?P<B>\d+) elements for each block of "
    r"(?P<T>\d+)": {**STRIDE, "busy": "min(up(n, B) * T, up(n, V))"},
    f"one thread for each {ITEM}": ROW,
    rf"a block of (?P<T>\d+) threads for each {ITEM} and a tree in shared memory": TREE,
    rf"a block of (?P<T>\d+) threads for each {ITEM} and warp shuffles": {
        **BLOCK,
        "barriers": "2 * passes",
    },
    rf"a block of (?P<T>\d+) threads for each {ITEM} that keeps it in shared memory": {
        **TREE,
        "reads": "1",
    },
    rf"(?P<G>\d+) lanes of a warp for each {ITEM}": {
        "rows": "1",
        "threads": "128",
        "blocks": "up(n, 128 // G)",
        "busy": "up(n, 128 // G) * (128 // G) * min(G, m)",
        "lane": "(lane // G, lane % G)",
    },
    f"one thread for each {ITEM} with a running maximum": {**ROW, **ONCE},
    f"one warp for each {ITEM} with running maxima": {**WARP, **ONCE},
    rf"(?P<P>\d+) threads for each {ITEM} and a second kernel that joins their parts": SPLIT,
    rf"(?P<P>\d+) threads for each {ITEM} that meet in atomicAdd, and a second kernel": SPLIT,
    rf"a grid-stride loop with (?P<B>\d+) {ITEM}s for each block of (?P<T>\d+)": {**ROW, **STRIDE},
    rf"one thread for each {ITEM} with (?P<U>\d+) partial results": ROW,
    f"one warp for each {ITEM}": WARP,
    rf"blocks of (?P<W>\d+) warps, one for each {ITEM}": {
        **WARP,
        "threads": "32 * W",
        "blocks": "up(n, W)",
        "lane": "(lane // 32, lane % 32)",
    },
    f"one thread for each {ITEM} by Welford's recurrence": {**ROW, **ONCE},
    f"one warp for each {ITEM} by Welford's recurrence": {**WARP, **ONCE},
    r"a block of (?P<T>\d+) threads for each row that scans in shared memory": {
        **BLOCK,
        **SCAN,
        "barriers": "up(m, T) * (2 + 2 * log2(T))",
    },
    "one thread for each row that keeps a running result": {**ROW, **SCAN},
    "one warp for each row that scans by shuffles": {**WARP, **SCAN},
    r"(?P<T>\d+) x (?P=T) tiles in shared memory": tiles("T", "T", "T", "n * m * batch"),
    r"16 x (?P<W>\d+) tiles in shared memory, (?P<C>\d+) columns for each thread": tiles(
        "16", "W", "16", "n * covered(m, W, 16) * batch"
    ),
    r"(?P<H>\d+) x (?P<W>\d+) tiles in shared memory, (?P<R>\d+) x (?P<C>\d+) sums for each "
    r"thread": tiles("H", "W", "16", "covered(n, H, 16) * covered(m, W, 16) * batch"),
    r"(?P<U>\d+) outputs for each thread in registers": {
        "threads": "64",
        "blocks": "up(m, 64) * up(n, U) * batch",
        "busy": "m * up(n, U) * batch",
        "loads": "batch * depth * m * (n + up(n, U))",
    },
}


def up(value: int, divisor: int) -> int:
    return -(-value // divisor)


def log2(value: int) -> int:
    return value.bit_length() - 1


def covered(extent: int, tile: int, lanes: int) -> int:
    """Lanes with an output along an axis whose tiles have several outputs per lane."""
    return extent // tile * lanes + min(lanes, extent % tile)


@dataclass
class Found:
    """A plan with the sizes for its formulas."""

    formulas: Plan
    facts: dict[str, int]

    def __call__(self, name: str, other: str = "0", **more: int) -> Any:
        functions = {"up": up, "log2": log2, "covered": covered, "min": min}
        return eval(self.formulas.get(name, other), functions, {**self.facts, **more})  # noqa: S307

    def has(self, name: str) -> bool:
        return name in self.formulas
