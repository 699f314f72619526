# SPDX-License-Identifier: Apache-2.0
"""The reward as verl loads it:

    custom_reward_function.path=.../python/musacoder/verl.py
    custom_reward_function.name=compute_score

Rows are the forge's rl.jsonl: reward_model.ground_truth holds the task's code.  verl_hooks.py has
the rest of the method: episodes, advantage, MirrorPop and Buffered Dynamic Retry.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The file is loaded by its path, not as part of the package.
if str(Path(__file__).resolve().parents[1]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from musacoder.client import Judged, evaluate, evaluate_async  # noqa: E402

# The reward of an answer whose verdict says nothing of it.  verl's own estimators cannot leave a
# sample out, so the number lies between answers that fail (below 0) and those that pass (at least
# 1).  The estimator of verl_hooks.py knows it by its exact value, which no episode earns.
UNSCORED = 2.0**-30


def _scores(judged: Judged) -> dict[str, Any]:
    """The same keys for every sample, as verl wants them."""
    return {
        "score": UNSCORED if judged.reward is None else judged.reward,
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
    return _scores(evaluate(ground_truth, solution_str))


async def compute_score_async(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    **_: Any,
) -> dict[str, Any]:
    """The same for reward loops that take coroutines."""
    return _scores(await evaluate_async(ground_truth, solution_str))
