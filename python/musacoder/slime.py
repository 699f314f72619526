# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""Reward, episodes, advantage, MirrorPop and filter, as slime loads them:

    --custom-generate-function-path musacoder.slime.generate    episodes, PrimeEcho
    --custom-reward-post-process-path musacoder.slime.post_process_rewards      advantages
    --use-tis --custom-tis-function-path musacoder.slime.mirror_pop
    --dynamic-sampling-filter-path musacoder.slime.check_spread
    --custom-rm-path musacoder.slime.reward                     in place of generate, one turn

Buffered Dynamic Retry is in slime_data.py.  `sample.label` is the task: its code, or a name that
the service knows; an answer is judged in the dialect that `sample.metadata` names.
docs/trainers.md has the whole command line.

Settings are members of the YAML file that `--custom-config-path` names, or else environment
variables of the same name in capitals: `musacoder_turns` (3), `musacoder_delta` (0.05).

An answer that was cut at its limit of tokens has the score -1.  One that could not be judged has
the reward 0 and is removed from the loss (`remove_sample`).  post_process_rewards puts an
unsupported one back, with the least reward of its group; without it, and after infra, advantages
leave the answer out of its group's mean and spread.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from musacoder import Judged, episode, rules
from musacoder.client import evaluate_async
from musacoder.rules import Reward

if TYPE_CHECKING:
    import torch

KEY = "musacoder"  # The part of sample.metadata that this module writes.
_MARK = "\x02answer\x03"


def setting(args: Any, name: str, default: float) -> float:
    """`musacoder_NAME` of slime's arguments, else $MUSACODER_NAME, else the default."""
    value = getattr(args, f"musacoder_{name}", None)
    return float(os.environ.get(f"MUSACODER_{name.upper()}", default) if value is None else value)


# ---- Reward and episodes ------------------------------------------------------------------------


async def reward(args: Any, sample: Any, **_: Any) -> float:
    """The score of one answer."""
    judged = await _judge_first(sample)
    return _settle(sample, [(sample.response, judged)], judged.reward)


async def _judge(sample: Any, answer: str) -> Judged:
    return await evaluate_async(sample.label, answer, episode.options_of(sample.metadata))


async def _judge_first(sample: Any) -> Judged:
    if sample.status == type(sample).Status.TRUNCATED:
        return episode.cut_off(sample.response_length)
    return await _judge(sample, sample.response)


async def generate(
    args: Any, sample: Any, sampling_params: dict[str, Any], evaluation: bool = False
) -> Any:
    """Runs an episode: slime's engine answers, the service judges, its feedback is the next turn.

    Only the first turn is in sample.tokens and is trained; sample.reward is PrimeEcho's R.  In an
    evaluation there is one turn, and sample.reward is its score.
    """
    from slime.rollout import sglang_rollout

    Status = type(sample).Status
    first_status = (sample.metadata or {}).get(KEY, {}).get("first_status")
    if first_status is None:
        sample = await sglang_rollout.generate(args, sample, dict(sampling_params))
    else:
        # The episode was aborted in a later turn and restarted: its first turn is complete.
        sample.status = Status(first_status)
    if sample.status == Status.ABORTED:
        return sample
    turns = 1 if evaluation else int(setting(args, "turns", 3))
    judged = [(sample.response, await _judge_first(sample))]
    if not await _later_turns(args, sample, sampling_params, judged, turns):
        sample.metadata = {**(sample.metadata or {}), KEY: {"first_status": sample.status.value}}
        sample.status = Status.ABORTED
        return sample
    scores = [one.reward for _, one in judged]
    value = scores[0]
    if not evaluation:
        value = rules.reward_of_episode([rules.training_score(s) for s in scores], turns)
    sample.reward = _settle(sample, judged, value)
    return sample


async def _later_turns(
    args: Any, sample: Any, sampling_params: dict[str, Any], judged: list[Any], turns: int
) -> bool:
    """Adds the turns after the first to `judged`; False if the engine aborted a turn.

    The episode ends at a pass, at an answer without a score, or if a prompt leaves no room.
    """
    from slime.rollout import sglang_rollout

    state = sglang_rollout.GenerateState(args)
    options = getattr(args, "apply_chat_template_kwargs", None) or {}
    text = sample.prompt
    params = {key: value for key, value in sampling_params.items() if key != "custom_params"}
    while len(judged) < turns and episode.is_open(judged):
        if state.aborted:
            return False
        text = next_prompt(state.tokenizer, text, judged[-1][0], judged[-1][1].feedback, options)
        ids = state.tokenizer.encode(text, add_special_tokens=False)
        if not _has_room(args, len(ids), params):
            break
        url = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/generate"
        body = {"input_ids": ids, "sampling_params": dict(params)}
        output = await sglang_rollout.post(url, body)
        finish = output["meta_info"]["finish_reason"]["type"]
        if finish == "abort":
            return False
        answer = output["text"]
        if finish == "length":
            num_tokens = len(state.tokenizer.encode(answer, add_special_tokens=False))
            judged.append((answer, episode.cut_off(num_tokens)))
        else:
            judged.append((answer, await _judge(sample, answer)))
    return True


def _has_room(args: Any, num_tokens: int, params: dict[str, Any]) -> bool:
    limit = getattr(args, "rollout_max_context_len", None)
    return limit is None or num_tokens + int(params.get("max_new_tokens", 0)) <= limit


def _renderer(tokenizer: Any, options: dict[str, Any]) -> Callable[[list[dict[str, str]]], str]:
    def rendered(messages: list[dict[str, str]]) -> str:
        text = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **options
        )
        return str(text)

    return rendered


def _end(tokenizer: Any) -> str:
    """The token that ends an answer, which slime leaves in its text."""
    return str(getattr(tokenizer, "eos_token", None) or "")


def next_prompt(
    tokenizer: Any,
    prompt: str | list[dict[str, str]],
    answer: str,
    feedback: str,
    options: dict[str, Any] | None = None,
) -> str:
    """The text of the conversation so far with the feedback as the user's next turn.

    The answer is shown without its reasoning, and as the chat template shows an earlier turn.
    """
    rendered = _renderer(tokenizer, options or {})
    user = [{"role": "user", "content": _MARK}]
    before = prompt if isinstance(prompt, str) else rendered(prompt)
    tail = rendered(user).split(_MARK, 1)[1]  # It may begin the reasoning of the answer.
    turns = episode.next_messages(user, answer.removesuffix(_end(tokenizer)), feedback)
    return before.removesuffix(tail) + rendered(turns).split(_MARK, 1)[1]


def replay_prompt(
    tokenizer: Any,
    prompt: str | list[dict[str, str]],
    code: str,
    feedback: str,
    options: dict[str, Any] | None = None,
) -> str | list[dict[str, str]] | None:
    """The task's prompt with failed code and its feedback, in the same message.

    None where a rendered prompt does not end as the tokenizer's chat template ends one.
    """
    code = code.removesuffix(_end(tokenizer))
    if not isinstance(prompt, str):
        return episode.replay_messages(prompt, code, feedback)
    rendered = _renderer(tokenizer, options or {})
    tail = rendered([{"role": "user", "content": _MARK}]).split(_MARK, 1)[1]
    request = rules.retry_request(code, feedback)
    return prompt.removesuffix(tail) + request + tail if tail and prompt.endswith(tail) else None


def _settle(sample: Any, judged: list[tuple[str, Judged]], value: Reward) -> float:
    sample.metadata = {
        **(sample.metadata or {}),
        KEY: {
            "outcomes": [one.outcome for _, one in judged],
            "scores": [one.reward for _, one in judged],
            "reward": value,
            "turns": [dataclasses.asdict(turn) for turn in episode.turns_of(judged)],
        },
    }
    if value is None:
        sample.remove_sample = True
    return 0.0 if value is None else value


# ---- Advantage and filter -----------------------------------------------------------------------


def _reward_of(args: Any, sample: Any) -> Reward:
    """The sample's reward; None if it is unscored or was aborted by the engine."""
    if sample.remove_sample or sample.reward is None:
        return None
    key = getattr(args, "reward_key", None)
    return float(sample.reward[key] if key else sample.reward)


def _rewards_of_group(args: Any, samples: list[Any]) -> list[Reward]:
    outcomes = [(sample.metadata or {}).get(KEY, {}).get("outcomes") for sample in samples]
    return rules.with_minimum(
        [_reward_of(args, sample) for sample in samples],
        [bool(found) and found[-1] == "unsupported" for found in outcomes],
    )


def post_process_rewards(args: Any, samples: list[Any]) -> tuple[list[float], list[float]]:
    """Raw rewards and advantages, group by group, in the order of `samples`.

    An unsupported sample gets the least reward of its group.  A sample without an advantage
    (unscored, or of a group with too few rewards) is removed from the loss.
    """
    groups: dict[Any, list[int]] = {}
    for i, sample in enumerate(samples):
        groups.setdefault(sample.group_index, []).append(i)
    raw, normed = [0.0] * len(samples), [0.0] * len(samples)
    scale_by_std = bool(getattr(args, "grpo_std_normalization", True))
    for members in groups.values():
        rewards = _rewards_of_group(args, [samples[i] for i in members])
        found = rules.advantages(rewards, scale_by_std=scale_by_std)
        for i, reward, advantage in zip(members, rewards, found):
            raw[i] = reward or 0.0
            normed[i] = advantage or 0.0
            samples[i].remove_sample = advantage is None
    return raw, normed


def check_spread(args: Any, samples: list[Any], **_: Any) -> Any:
    """Keeps a group whose scored samples differ; slime's own filter counts removed ones as 0."""
    from slime.rollout.filter_hub.base_types import DynamicFilterOutput

    rewards = _rewards_of_group(args, samples)
    found = [advantage for advantage in rules.advantages(rewards) if advantage is not None]
    if any(found):
        return DynamicFilterOutput(keep=True)
    return DynamicFilterOutput(keep=False, reason="no_spread" if found else "too_few_scored")


# ---- MirrorPop ----------------------------------------------------------------------------------


def mirror_pop(
    args: Any,
    *,
    pg_loss: torch.Tensor,
    train_log_probs: list[torch.Tensor],
    rollout_log_probs: list[torch.Tensor],
    loss_masks: list[torch.Tensor],
    total_lengths: list[int],
    response_lengths: list[int],
    **_: Any,
) -> tuple[torch.Tensor, list[torch.Tensor], dict[str, torch.Tensor]]:
    """(pg_loss, masks, metrics): masks of rejected sequences are zero, pg_loss is as it was.

    slime divides by the sums of the masks before rejection, so no other sequence gains weight.
    Under context parallelism each rank has a part of every sequence, and the parts are gathered.
    """
    import torch
    from slime.backends.megatron_utils import cp_utils

    delta = setting(args, "delta", rules.DELTA)
    masks, kept, drifts = [], [], []
    for old, rollout, mask, total, length in zip(
        train_log_probs, rollout_log_probs, loss_masks, total_lengths, response_lengths
    ):
        with torch.no_grad():
            whole = [cp_utils.all_gather_with_cp(part, total, length) for part in (old, rollout)]
        keeps, drift = rules.mirror_pop(whole[0][None], whole[1][None], mask[None], delta)
        masks.append(mask * keeps.to(mask.dtype))
        kept.append(keeps.to(pg_loss.dtype).expand_as(old))
        drifts.append(drift.to(pg_loss.dtype).expand_as(old))
    metrics = {
        "mirror_pop_rejected": 1 - torch.cat(kept),
        "mirror_pop_drift": torch.cat(drifts),
    }
    return pg_loss, masks, metrics
