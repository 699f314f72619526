# SPDX-License-Identifier: Apache-2.0
"""The parts of a verdict as named numbers, for hosts that show or weigh them.

    components_of(verdict)   correct, speed, memory and general, each from 0 to 1
    scaled(reward)           the reward from 0 to 1

The reward (src/reward/score.h) is not their sum: it counts correctness and speed alone.
"""

from __future__ import annotations

from musacoder.judged import Json

NAMES = ("correct", "speed", "memory", "general")
_GAIN_MAX = 2.0  # nu_max of the reward: a speed-up of 3 is the most that counts.
_LOWEST, _HIGHEST = -1.0, 1.5  # The reward of a failed answer, and of one that is 3 times as fast.


def components_of(verdict: Json) -> dict[str, float]:
    """All of NAMES for any verdict, since hosts want the same names for every sample.

    correct: 1 for a pass, the share of trials that a wrong answer passed, else 0.
    speed: the gain over eager PyTorch that counts, 1 at three times its speed.
    memory: the share of eager PyTorch's memory that is saved.
    general: the share of trials at other sizes that passed.
    Speed and memory are 0 where nothing was measured, as on the CPU backend.
    """
    outcome = verdict["outcome"]
    if outcome["kind"] != "pass":
        return {**dict.fromkeys(NAMES, 0.0), "correct": float(outcome.get("q") or 0)}
    performance = outcome.get("performance") or {}
    return {
        "correct": 1.0,
        "speed": _speed(performance),
        "memory": _memory(performance),
        "general": float(outcome.get("generality") or 0),
    }


def _speed(performance: Json) -> float:
    speedup = performance["speedup_eager"]["low"] if performance else 1.0
    return _within(float(speedup - 1) / _GAIN_MAX)


def _memory(performance: Json) -> float:
    eager = performance.get("memory_eager_bytes") or 0
    return _within(1 - performance["memory_bytes"] / eager) if eager else 0.0


def scaled(reward: float) -> float:
    """0 for a failed answer, 0.2 to 0.4 for one that is right in part, 0.8 to 1 for a right one."""
    return _within((reward - _LOWEST) / (_HIGHEST - _LOWEST))


def _within(value: float) -> float:
    return min(max(value, 0.0), 1.0)
