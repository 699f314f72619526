# SPDX-License-Identifier: Apache-2.0
"""Calls of a PyTorch model, timed as a device process times a candidate's
(device/cuda/timed_batch.h): the judge's reference as the eager baseline, and compiled ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.timing.stopwatch import Stopwatch
from harness.worker import region
from harness.worker.place import Place
from harness.worker.program import call
from harness.worker.wire import Json

# Calls that allocated new memory are repeated, because PyTorch then waits for the device.
TRIES_MAX = 3


class TimedCalls:
    """Times calls in this process."""

    def __init__(self, executor_library: str, place: Place) -> None:
        self._library = executor_library
        self._place = place
        self._stopwatch: Stopwatch | None = None

    def time(
        self,
        model: torch.nn.Module,
        inputs_of: Callable[[int], Any],
        calls: int,
        *,
        is_gated: bool,
    ) -> Json:
        """The time of each call, on inputs that appear in two buffers in alternation."""
        if self._stopwatch is None:
            self._stopwatch = Stopwatch(self._library, self._place)
        places = [region.map_tensors(inputs_of(n), torch.clone) for n in range(min(2, calls))]
        for _ in range(TRIES_MAX):
            held_before = self._place.held_bytes()
            self._run(model, inputs_of, places, calls, is_gated)
            if self._place.held_bytes() <= held_before:
                break
        times = self._stopwatch.times(calls)
        return {"us": [us for us, _ in times], "queued_whole": sum(whole for _, whole in times)}

    def _run(
        self,
        model: torch.nn.Module,
        inputs_of: Callable[[int], Any],
        places: list[Any],
        calls: int,
        is_gated: bool,
    ) -> None:
        assert self._stopwatch is not None
        self._stopwatch.reset()
        for number in range(calls):
            place = places[number % 2]
            for seen, tensor in zip(region.tensors_of(place), region.tensors_of(inputs_of(number))):
                seen.copy_(tensor)
            self._stopwatch.begin(is_gated=is_gated)
            call(model, place)
            self._stopwatch.end()
