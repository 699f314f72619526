# SPDX-License-Identifier: Apache-2.0
"""The reward as verl loads it:

    custom_reward_function.path=.../python/musacoder/verl.py
    custom_reward_function.name=compute_score

Rows are the forge's rl.jsonl: reward_model.ground_truth holds the task's code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# verl loads this file by its path.
if str(Path(__file__).resolve().parents[1]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from musacoder.client import Judged, evaluate, evaluate_async  # noqa: E402

# What verl gets for a verdict that says nothing of the answer: it can leave no sample out, so such
# an answer lies between those that fail (at most -0.5 + 0.5 q) and those that pass (at least 1).
UNSCORED = 0.0


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
