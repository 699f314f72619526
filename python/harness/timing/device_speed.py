# SPDX-License-Identifier: Apache-2.0
"""Measures this device: memory bandwidth in bytes per second, and matmul operations per second."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.worker.place import Place
from harness.worker.wire import Json

_COPY_BYTES = 1 << 30
_MATMUL_SIZE = 8192
_REPEATS = 5


def measure(place: Place) -> Json:
    """The best of several runs, each so long that launch overhead does not matter."""
    source = torch.empty(_COPY_BYTES // 4, device=place.device).fill_(1.0)
    target = torch.empty_like(source)
    copy_s = _best_s(place, lambda: target.copy_(source))
    total_s = _best_s(place, source.sum)
    bandwidth = max(2 * _COPY_BYTES / copy_s, _COPY_BYTES / total_s)
    del source, target
    return {
        "bandwidth_gbs": bandwidth / 1e9,
        "fp32_tflops": _matmul_tflops(place, torch.float32),
        "half_tflops": _matmul_tflops(place, torch.bfloat16),
    }


def _matmul_tflops(place: Place, dtype: torch.dtype) -> float:
    factor = torch.randn(_MATMUL_SIZE, _MATMUL_SIZE, device=place.device, dtype=dtype)
    seconds = _best_s(place, lambda: factor @ factor)
    return 2.0 * float(_MATMUL_SIZE) ** 3 / seconds / 1e12


def _best_s(place: Place, run: Callable[[], object]) -> float:
    run()
    return min(place.seconds(run) for _ in range(_REPEATS))
