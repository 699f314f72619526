# SPDX-License-Identifier: Apache-2.0
"""The reward function for TRL's trainers. It needs only the standard library.

    trainer = GRPOTrainer(model, reward_funcs=musacoder.trl.reward, train_dataset=rows, ...)

Rows have the task's code (or a name that the verifier knows) in a column `task`, `ground_truth` or
`reward_model`, as the forge's rl.jsonl has it, and maybe `options` and `dialect`. Answers are
judged by musacoder.evaluate: by the services of $MUSACODER_URL, or by a child of the trainer.
TRL's own trainer does not say which answers were cut at their limit of tokens; with
musacoder.trl_trainer.Trainer they are -1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from musacoder import episode, rules
from musacoder.client import shared_threads
from musacoder.judged import Judged, Options, Refused
from musacoder.local import evaluate

Completion = str | Sequence[dict[str, Any]]


def reward(completions: Sequence[Completion], **columns: Any) -> list[float | None]:
    """The reward of each completion; None, which TRL omits, if a verdict has no reward.

    An unsupported answer gets the least reward among the answers of this call to its prompt.
    completions: texts, or conversations of which the last message counts.
    columns: the data set's columns, a value for each completion, and TRL's further arguments.
    Raises Refused if no column has a task, and Unreachable if no verifier can judge.
    """
    tasks = _tasks(columns)
    answers = [_answer_of(completion) for completion in completions]
    ids = columns.get("completion_ids") or [[]] * len(completions)
    is_cut = columns.get("musacoder_is_cut") or [False] * len(completions)
    calls = zip(tasks, answers, _options(columns, len(completions)), ids, is_cut, strict=True)
    judged = list(shared_threads().map(lambda call: _judge(*call), calls))
    _log(judged, columns.get("log_extra"), columns.get("log_metric"))
    return _with_minimum(judged, columns.get("prompts"))


def _judge(
    task: str, answer: str, options: Options | None, ids: Sequence[int], is_cut: bool
) -> Judged:
    return episode.cut_off(len(ids)) if is_cut else evaluate(task, answer, options)


def _options(columns: dict[str, Any], count: int) -> list[Options | None]:
    """The options of each row; its dialect is one of them."""
    none = [None] * count
    given = columns.get("options") or none
    places = [columns.get(name) or none for name in ("metadata", "extra_info")]
    dialects = [{"dialect": one} for one in columns.get("dialect") or none]
    found = [episode.options_of(*row) for row in zip(given, dialects, *places, strict=True)]
    return [{**(own or {}), **(one or {})} or None for own, one in zip(given, found, strict=True)]


def _with_minimum(judged: Sequence[Judged], prompts: Sequence[Any] | None) -> list[float | None]:
    found = [one.reward for one in judged]
    groups: dict[str, list[int]] = {}
    for i, prompt in enumerate(prompts or []):
        groups.setdefault(json.dumps(prompt, sort_keys=True), []).append(i)
    for members in groups.values():
        is_unsupported = [judged[i].outcome == "unsupported" for i in members]
        rewards = rules.with_minimum([found[i] for i in members], is_unsupported)
        for i, one in zip(members, rewards):
            found[i] = one
    return found


def _tasks(columns: dict[str, Any]) -> list[str]:
    if "reward_model" in columns:
        return [row["ground_truth"] for row in columns["reward_model"]]
    for name in ("task", "ground_truth"):
        if name in columns:
            return list(columns[name])
    raise Refused("no column task, ground_truth or reward_model: a row needs the task's code")


def _answer_of(completion: Completion) -> str:
    if isinstance(completion, str):
        return completion
    return episode.text_of(completion[-1].get("content")) if completion else ""


def _log(
    judged: Sequence[Judged],
    log_extra: Callable[[str, list[str]], None] | None,
    log_metric: Callable[[str, float], None] | None,
) -> None:
    """Logs the outcomes to TRL's table of completions, and two fractions to its metrics."""
    if log_extra is not None:
        log_extra("outcome", [one.outcome for one in judged])
    if log_metric is not None and judged:
        passed = sum(one.passed for one in judged) / len(judged)
        scored = sum(one.reward is not None for one in judged) / len(judged)
        log_metric("musacoder/passed", passed)
        log_metric("musacoder/scored", scored)
