# SPDX-License-Identifier: Apache-2.0
"""How fast this device is: bytes a second through its memory, operations a second in a matmul."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.wire import Json

_COPY_BYTES = 1 << 30
_MATMUL_SIZE = 8192
_REPEATS = 5


def measure(device: torch.device) -> Json:
    """The best of some tries, each long enough that launching it does not count."""
    source = torch.empty(_COPY_BYTES // 4, device=device).fill_(1.0)
    target = torch.empty_like(source)
    copy_s = _best_s(lambda: target.copy_(source))
    total_s = _best_s(source.sum)
    bandwidth = max(2 * _COPY_BYTES / copy_s, _COPY_BYTES / total_s)
    del source, target
    return {
        "bandwidth_gbs": bandwidth / 1e9,
        "fp32_tflops": _matmul_tflops(device, torch.float32),
        "half_tflops": _matmul_tflops(device, torch.bfloat16),
    }


def _matmul_tflops(device: torch.device, dtype: torch.dtype) -> float:
    factor = torch.randn(_MATMUL_SIZE, _MATMUL_SIZE, device=device, dtype=dtype)
    seconds = _best_s(lambda: factor @ factor)
    return 2.0 * float(_MATMUL_SIZE) ** 3 / seconds / 1e12


def _best_s(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(_REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(float(start.elapsed_time(end)) / 1e3)
    return min(times)
