# SPDX-License-Identifier: Apache-2.0
"""The reward function for verl:

    custom_reward_function.path=.../python/musacoder/verl.py
    custom_reward_function.name=compute_score

Rows are the forge's rl.jsonl: reward_model.ground_truth holds the task's code, and an answer is
judged in the dialect that extra_info names.  verl passes only the text to this function, so it
cannot know that an answer was cut at its limit; the agent loop of verl_hooks.py does.  That module
has the rest of the method too: episodes, advantage, MirrorPop and Buffered Dynamic Retry.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The file is loaded by its path, not as part of the package.
if str(Path(__file__).resolve().parents[1]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from musacoder import episode  # noqa: E402
from musacoder.client import Judged, evaluate, evaluate_async  # noqa: E402

# The reward of an answer that its verdict does not judge.  verl's own estimators cannot leave a
# sample out, so the number lies between answers that fail (below 0) and those that pass (at least
# 1).  The estimator of verl_hooks.py recognises it by its exact value, which no episode earns.
UNSCORED = 2.0**-30
# The same for an unsupported answer, which that estimator gives the least reward of its group.
UNSUPPORTED = 2.0**-29


def reward_of(value: float | None, is_unsupported: bool) -> float:
    """The number that verl gets for a reward that may be missing."""
    if value is not None:
        return value
    return UNSUPPORTED if is_unsupported else UNSCORED


def _scores(judged: Judged) -> dict[str, Any]:
    """The same keys for every sample, as verl requires."""
    return {
        "score": reward_of(judged.reward, judged.outcome == "unsupported"),
        "scored": float(judged.reward is not None),
        "passed": float(judged.passed),
        "outcome": judged.outcome,
    }


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    **_: Any,
) -> dict[str, Any]:
    """Judges solution_str against the task in ground_truth."""
    return _scores(evaluate(ground_truth, solution_str, episode.options_of(extra_info)))


async def compute_score_async(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    **_: Any,
) -> dict[str, Any]:
    """The same for reward loops with coroutines."""
    options = episode.options_of(extra_info)
    return _scores(await evaluate_async(ground_truth, solution_str, options))
