# SPDX-License-Identifier: Apache-2.0
"""The reward and the episodes as slime loads them:

    --custom-rm-path musacoder.slime.reward                     one turn
    --custom-generate-function-path musacoder.slime.generate    up to $MUSACODER_TURNS turns (3)
    --custom-reward-post-process-path musacoder.slime.post_process_rewards

`sample.label` is the task: its code, or a name that the service knows.  Without any of these,
slime's own `--rm-type remote_rm --rm-url http://127.0.0.1:8377/v1/compat/slime --reward-key score`
asks the service directly.

An answer that could not be judged (infra, unsupported) has the reward 0 and is removed from the
loss (`remove_sample`); post_process_rewards also leaves it out of its group's mean and spread.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from musacoder.client import Judged, evaluate_async

ALPHA = 0.75  # PrimeEcho's, of the paper.
EARLY = (0.2, 0.1)  # Bonus by turn of the first pass.
_EPSILON = 1e-6
_MARK = "\x02answer\x03"


def prime_echo(scores: Sequence[float | None]) -> float | None:
    """R = alpha s_1 + (1 - alpha) max_t s_t + b_early (src/rl/prime_echo.h)."""
    known = [score for score in scores if score is not None]
    if not scores or len(known) < len(scores):
        return None
    first_pass = next((i for i, score in enumerate(known) if score >= 1), len(EARLY))
    early = EARLY[first_pass] if first_pass < len(EARLY) else 0.0
    return ALPHA * known[0] + (1 - ALPHA) * max(known) + early


def advantages(rewards: Sequence[float | None]) -> list[float]:
    """(R - mean) / (std + 1e-6) of one group, std with n - 1 (src/rl/advantage.h).

    0 for what has no reward, for a group of which fewer than two or than half have one, and where
    all are equal.
    """
    known = [reward for reward in rewards if reward is not None]
    nothing = [0.0] * len(rewards)
    if len(known) < 2 or 2 * len(known) < len(rewards) or max(known) - min(known) <= _EPSILON:
        return nothing
    mean = sum(known) / len(known)
    std = math.sqrt(sum((reward - mean) ** 2 for reward in known) / (len(known) - 1))
    return [0.0 if reward is None else (reward - mean) / (std + _EPSILON) for reward in rewards]


async def reward(args: Any, sample: Any, **_: Any) -> float:
    """The score of one answer."""
    judged = await evaluate_async(sample.label, sample.response)
    return _settle(sample, [judged], judged.reward)


async def generate(args: Any, sample: Any, sampling_params: dict[str, Any]) -> Any:
    """An episode: slime's engine answers, the service judges, its feedback is the next turn.

    Only the first turn is in sample.tokens and is trained; sample.reward is PrimeEcho's R.
    """
    from slime.rollout import sglang_rollout  # type: ignore[import-not-found]

    sample = await sglang_rollout.generate(args, sample, dict(sampling_params))
    if sample.status == type(sample).Status.ABORTED:
        return sample
    judged = [await evaluate_async(sample.label, sample.response)]
    text = sample.prompt
    answer = sample.response
    for _ in range(int(os.environ.get("MUSACODER_TURNS", "3")) - 1):
        if judged[-1].passed or judged[-1].reward is None:
            break
        tokenizer = sglang_rollout.GenerateState(args).tokenizer
        text = next_prompt(tokenizer, text, answer, judged[-1].feedback)
        output = await sglang_rollout.post(
            f"http://{args.sglang_router_ip}:{args.sglang_router_port}/generate",
            {"text": text, "sampling_params": dict(sampling_params)},
        )
        answer = output["text"]
        judged.append(await evaluate_async(sample.label, answer))
    sample.reward = _settle(sample, judged, prime_echo([one.reward for one in judged]))
    return sample


def next_prompt(
    tokenizer: Any, prompt: str | list[dict[str, str]], answer: str, feedback: str
) -> str:
    """The text of the conversation so far with the feedback as the user's next turn."""

    def rendered(messages: list[dict[str, str]]) -> str:
        return str(
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        )

    before = prompt if isinstance(prompt, str) else rendered(prompt)
    turns = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": _MARK},
        {"role": "user", "content": feedback},
    ]
    end = str(getattr(tokenizer, "eos_token", None) or "")
    return before + answer.removesuffix(end) + rendered(turns).split(_MARK, 1)[1]


def _settle(sample: Any, judged: list[Judged], value: float | None) -> float:
    sample.metadata = {
        **(sample.metadata or {}),
        "musacoder": {
            "outcomes": [one.outcome for one in judged],
            "scores": [one.reward for one in judged],
            "reward": value,
        },
    }
    if value is None:
        sample.remove_sample = True
    return 0.0 if value is None else value


def post_process_rewards(args: Any, samples: list[Any]) -> tuple[list[float], list[float]]:
    """Raw rewards and advantages, group by group, in the order of `samples`."""
    groups: dict[Any, list[int]] = {}
    for i, sample in enumerate(samples):
        groups.setdefault(sample.group_index, []).append(i)
    normed = [0.0] * len(samples)
    for members in groups.values():
        values = [None if samples[i].remove_sample else samples[i].reward for i in members]
        for i, advantage in zip(members, advantages(values)):
            normed[i] = advantage
    return [float(sample.reward) for sample in samples], normed
