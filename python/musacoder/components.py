# SPDX-License-Identifier: Apache-2.0
"""The parts of a reward, and a verdict's other measures, as named numbers for other projects.

    parts_of(reward)     correct and speed, which add up to the reward
    others_of(verdict)   memory and general, each from 0 to 1, which the reward does not count
    scaled(reward)       the reward from 0 to 1

NeMo RL refuses components that do not add up to the reward, so there are two groups.
"""

from __future__ import annotations

from musacoder.judged import Json

NAMES = ("correct", "speed", "memory", "general")
_RIGHT = 1.0  # The reward of a right answer without speed-up (src/reward/score.h).
_LOWEST, _HIGHEST = -1.0, 1.5  # The reward of a failed answer, and of one three times as fast.


def parts_of(reward: float, *, is_scaled: bool = False) -> dict[str, float]:
    """correct: from -1 to 1; speed: from 0 to 0.5; scaled, from 0 to 0.8 and from 0 to 0.2."""
    correct, speed = min(reward, _RIGHT), max(reward - _RIGHT, 0.0)
    if is_scaled:
        whole = scaled(reward)
        correct = min(whole, scaled(_RIGHT))
        speed = whole - correct
    return {"correct": correct, "speed": speed}


def others_of(verdict: Json) -> dict[str, float]:
    """memory: the fraction of eager PyTorch's memory that is saved; general: the fraction of trials
    at other sizes that passed.

    Both are 0 for an answer that did not pass; memory is 0 if it was not measured.
    """
    outcome = verdict["outcome"]
    if outcome["kind"] != "pass":
        return {"memory": 0.0, "general": 0.0}
    performance = outcome.get("performance") or {}
    eager = performance.get("memory_eager_bytes") or 0
    saved = 1 - performance["memory_bytes"] / eager if eager else 0.0
    return {"memory": max(saved, 0.0), "general": float(outcome.get("generality") or 0)}


def scaled(reward: float) -> float:
    """0 for a failed answer, 0.2 to 0.4 for a partly right answer, 0.8 to 1 for a right answer."""
    return min(max((reward - _LOWEST) / (_HIGHEST - _LOWEST), 0.0), 1.0)
