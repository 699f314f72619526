# SPDX-License-Identifier: Apache-2.0
"""Controls which configuration Triton's autotuners use, and records what they did in a call.

In a trial the judge chooses the configuration by number, so that it can compare the results of
each. In timed calls an autotuner measures with the device's events and takes the fastest, as usual.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from harness.worker.wire import Json

TAKEN_MAX = 400  # Characters of a call's description of configurations.
_RUNS, _RUNS_MS = 20, 25.0


class Tuner:
    """The choice of all autotuners of this process."""

    def __init__(self) -> None:
        self._choice: int | None = 0
        self._most = 1
        self._taken: dict[str, str] = {}
        self._compile_s = 0.0

    def begin(self, choice: int | None) -> None:
        """Sets the configuration for the next calls: its number, or None for the fastest."""
        self._choice, self._most, self._taken = choice, 1, {}

    def found(self) -> Json:
        """The record "triton" of protocol.json about the time since `begin`."""
        words = "; ".join(f"{name}: {taken}" for name, taken in self._taken.items())
        compile_s, self._compile_s = self._compile_s, 0.0
        return {"configurations": self._most, "taken": words[:TAKEN_MAX], "compile_s": compile_s}

    def note_compiled(self, microseconds: int) -> None:
        self._compile_s += microseconds / 1e6

    def run(self, tune: Callable[..., Any], autotuner: Any, *args: Any, **kwargs: Any) -> Any:
        """Replaces Autotuner.run, which is `tune`."""
        if self._choice is None or len(autotuner.configs) < 2:
            return tune(autotuner, *args, **kwargs)
        from triton.compiler.errors import CompileTimeAssertionFailure
        from triton.runtime.errors import OutOfResources

        autotuner.nargs = dict(zip(autotuner.arg_names, args))
        configs = autotuner.prune_configs(kwargs)
        self._most = max(self._most, len(configs))
        failure: Exception | None = None
        for number in range(len(configs)):  # A configuration that does not fit is skipped.
            config = configs[(self._choice + number) % len(configs)]
            try:
                return self._run_with(config, autotuner, args, kwargs)
            except (OutOfResources, CompileTimeAssertionFailure) as error:
                failure = error
        assert failure is not None
        raise failure

    def _run_with(self, config: Any, autotuner: Any, args: Any, kwargs: Any) -> Any:
        values = config.all_kwargs()
        autotuner.best_config = config
        self._taken[autotuner.base_fn.__name__] = str(config)
        if config.pre_hook is not None:
            config.pre_hook({**autotuner.nargs, **kwargs, **values})
        return autotuner.fn.run(*args, **kwargs, **values)


def install() -> Tuner:
    """Puts a new Tuner in front of all autotuners of this process."""
    from triton import knobs
    from triton.runtime.autotuner import Autotuner

    tuner = Tuner()
    tune = Autotuner.run
    Autotuner.run = lambda self, *args, **kwargs: tuner.run(tune, self, *args, **kwargs)

    def listen(*, times: Any, cache_hit: bool, **_: Any) -> None:
        if not cache_hit:
            tuner.note_compiled(times.total)

    knobs.compilation.listener = listen
    return tuner


def benchmarker(module: ModuleType) -> Callable[..., list[float]]:
    """The milliseconds of a call by events of the device's `module`, at some quantiles."""

    def measure(
        call: Callable[[], Any], quantiles: Sequence[float] = (0.5,), **_: Any
    ) -> list[float]:
        call()  # The first call compiles.
        first = _timed(module, call)
        runs = max(1, min(_RUNS, int(_RUNS_MS / max(first, 1e-3))))
        times = sorted(_timed(module, call) for _ in range(runs))
        if tuple(quantiles) == (0.5,):
            return [statistics.median(times)]
        return [times[round(part * (len(times) - 1))] for part in quantiles]

    return measure


def _timed(module: ModuleType, call: Callable[[], Any]) -> float:
    start, end = module.Event(enable_timing=True), module.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))
