# SPDX-License-Identifier: Apache-2.0
"""The reward as TRL's trainers call it. It needs the standard library alone.

    trainer = GRPOTrainer(model, reward_funcs=musacoder.trl.reward, train_dataset=rows, ...)

Rows have the task's code (or a name that the verifier knows) in a column `task`, `ground_truth` or
`reward_model`, as the forge's rl.jsonl has it, and maybe `options`. Answers are judged by
musacoder.evaluate: by the services of $MUSACODER_URL, or by a child of the trainer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from musacoder.client import shared_threads
from musacoder.judged import Judged, Refused
from musacoder.local import evaluate

Completion = str | Sequence[dict[str, Any]]


def reward(completions: Sequence[Completion], **columns: Any) -> list[float | None]:
    """The reward of each completion; None, which TRL leaves out, where a verdict has none.

    completions: texts, or conversations of which the last message counts.
    columns: those of the data set, a value for each completion, and what else TRL passes.
    Raises Refused where no column has a task, and Unreachable where nothing can judge.
    """
    tasks = _tasks(columns)
    options = columns.get("options") or [None] * len(completions)
    answers = [_text(completion) for completion in completions]
    judged = list(shared_threads().map(evaluate, tasks, answers, options))
    _log(judged, columns.get("log_extra"), columns.get("log_metric"))
    return [one.reward for one in judged]


def _tasks(columns: dict[str, Any]) -> list[str]:
    if "reward_model" in columns:
        return [row["ground_truth"] for row in columns["reward_model"]]
    for name in ("task", "ground_truth"):
        if name in columns:
            return list(columns[name])
    raise Refused("no column task, ground_truth or reward_model: a row needs the task's code")


def _text(completion: Completion) -> str:
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _log(
    judged: Sequence[Judged],
    log_extra: Callable[[str, list[str]], None] | None,
    log_metric: Callable[[str, float], None] | None,
) -> None:
    """The outcomes into TRL's table of completions, and two shares into its metrics."""
    if log_extra is not None:
        log_extra("outcome", [one.outcome for one in judged])
    if log_metric is not None and judged:
        passed = sum(one.passed for one in judged) / len(judged)
        scored = sum(one.reward is not None for one in judged) / len(judged)
        log_metric("musacoder/passed", passed)
        log_metric("musacoder/scored", scored)
