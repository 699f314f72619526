# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""PrimeEcho, the project's advantage and MirrorPop for TRL 1.16:

    from musacoder.trl_trainer import Trainer, episode_reward, rollout

    trainer = Trainer(model, reward_funcs=episode_reward, rollout_func=rollout,
                      args=GRPOConfig(use_vllm=True,
                                      vllm_importance_sampling_correction=False, ...),
                      train_dataset=load_dataset("json", data_files="rl.jsonl")["train"])

Rows are the forge's rl.jsonl: `prompt` (messages), `label`, the task, and `dialect`, in which an
answer is judged.  Without `rollout_func` the trainer takes any reward function, and episodes have
one turn.  The number of turns is $MUSACODER_TURNS (3).  docs/trainers.md has a whole script.
"""

from __future__ import annotations

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from trl import GRPOTrainer

from musacoder import Judged, episode, rules
from musacoder.client import evaluate
from musacoder.judged import Options
from musacoder.rules import Reward

_THREADS = 64  # Verdicts in flight.
UNSUPPORTED = -math.inf  # The reward of an unsupported answer, until Trainer knows its group.


class Trainer(GRPOTrainer):
    """TRL's GRPOTrainer with rules.advantages and MirrorPop.

    Samples without a reward (None from every reward function), and groups with too few of them, are
    in no part of the loss.  `off_policy_mask_threshold` is MirrorPop's delta, 0.05 unless it is
    set; it needs a generator with log-probabilities of its own (use_vllm=True), for transformers'
    own generation has none and nothing is rejected.  `loss_type="grpo"` divides by all sequences of
    the batch, so that no sequence gains weight by the rejection of another.
    """

    off_policy_mask_threshold: float | None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if self.off_policy_mask_threshold is None:
            self.off_policy_mask_threshold = rules.DELTA

    # ---- Advantage ----------------------------------------------------------------------------

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: Any, completions: Any, ids: list[list[int]]
    ) -> torch.Tensor:
        for row, one in zip(inputs, ids, strict=True):
            row["musacoder_is_cut"] = _is_cut(self, one)  # TRL hands it to reward functions.
        found: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, ids)
        found = _with_minimum(found, self._group_size())
        self._rewards_by_function = found  # Rows are the samples of all processes.
        return found

    def _group_size(self) -> int:
        return int(self.num_generations if self.model.training else self.num_generations_eval)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        size = self._group_size()
        rewards = _weighed(self._rewards_by_function, self.reward_weights)
        scale_by_std = self.scale_rewards != "none"
        found: list[float | None] = []
        for begin in range(0, len(rewards), size):
            group = rewards[begin : begin + size]
            found += rules.advantages(group, scale_by_std=scale_by_std)
        begin = self.accelerator.process_index * len(inputs)
        mine = found[begin : begin + len(inputs)]
        device = output["advantages"].device
        values = [0.0 if value is None else value for value in mine]
        output["advantages"] = torch.tensor(values, device=device)
        # TRL multiplies the loss's mask by tool_mask, the KL's too.
        in_loss = torch.tensor([[value is not None] for value in mine], device=device)
        mask = output["completion_mask"]
        tool_mask = output.get("tool_mask", torch.ones_like(mask))
        output["tool_mask"] = tool_mask * in_loss.to(mask.dtype)
        return output

    # ---- MirrorPop ----------------------------------------------------------------------------

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self._loss_inputs = dict(inputs)  # A copy: TRL uses the batch again in later iterations.
        loss: torch.Tensor = super()._compute_loss(model, self._loss_inputs)
        return loss

    def get_off_policy_mask(
        self,
        advantages: torch.Tensor,
        per_token_logps: torch.Tensor,
        sampling_per_token_logps: torch.Tensor,
        mask: torch.Tensor,
        off_policy_threshold: float,
    ) -> torch.Tensor:
        """[sequences, 1]: 1 keeps.  TRL asks before it reads the reference's log-probabilities.

        It compares the policy before the update if TRL has it, not the current one.
        """
        inputs = self._loss_inputs
        current = per_token_logps.detach()
        old = inputs.get("old_per_token_logps", current)
        kept, drift = rules.mirror_pop(old, sampling_per_token_logps, mask, off_policy_threshold)
        kept = kept.unsqueeze(1)
        if "ref_per_token_logps" in inputs:
            # TRL adds the KL after this mask; with itself as its reference a rejected sequence has
            # neither KL nor a gradient of it.
            inputs["ref_per_token_logps"] = torch.where(
                kept, inputs["ref_per_token_logps"], current
            )
        mode = "train" if self.model.training else "eval"
        has_tokens = (mask != 0).any(dim=1)
        rejected = (has_tokens & ~kept.squeeze(1)).float().mean()
        self._metrics[mode]["mirror_pop/rejected"].append(
            self.accelerator.gather(rejected).mean().item()
        )
        self._metrics[mode]["mirror_pop/drift"].append(
            self.accelerator.gather(drift.mean()).nanmean().item()
        )
        return kept.to(mask.dtype)


def _with_minimum(rewards: torch.Tensor, size: int) -> torch.Tensor:
    """The rewards with UNSUPPORTED replaced by the group's least reward, for each function."""
    table = rewards.clone()
    for begin in range(0, len(table), size):
        for column in table[begin : begin + size].unbind(dim=1):
            values = column.tolist()
            found = rules.with_minimum(
                [value if math.isfinite(value) else None for value in values],
                [value == UNSUPPORTED for value in values],
            )
            column.copy_(torch.tensor([math.nan if one is None else one for one in found]))
    return table


def _weighed(rewards: torch.Tensor, weights: torch.Tensor) -> list[Reward]:
    """The weighted sum of each row; None if no function has a reward."""
    sums = (rewards * weights.to(rewards.device).unsqueeze(0)).nansum(dim=1).tolist()
    unscored = torch.isnan(rewards).all(dim=1).tolist()
    return [None if missing else value for value, missing in zip(sums, unscored)]


# ---- Episodes -----------------------------------------------------------------------------------


def episode_reward(
    completions: list[Any], musacoder_reward: list[Reward] | None = None, **_: Any
) -> list[Reward]:
    """The rewards that `rollout` found; None for an episode without one."""
    if musacoder_reward is None:
        raise ValueError("episode_reward: give the trainer rollout_func=musacoder's rollout too")
    return list(musacoder_reward)


def rollout(prompts: list[list[dict[str, str]]], trainer: Any) -> dict[str, Any]:
    """TRL's rollout_func: episodes whose first turn is trained, with PrimeEcho's R.

    In an evaluation there is one turn, and the reward is its score.  With several processes all of
    them ask the generator for all episodes in each turn, since its calls are collective; answers
    that belong to no episode of this process are dropped.
    """
    is_training = trainer.model.training
    turns = int(os.environ.get("MUSACODER_TURNS", "3")) if is_training else 1
    tasks = [_task_of(trainer, prompt) for prompt in prompts]  # Labels and options.
    prompt_ids, images, fields = trainer._tokenize_prompts(prompts)
    size = trainer.num_generations if is_training else trainer.num_generations_eval
    ids, log_probs = trainer._generate_single_turn(prompt_ids, images, fields, size)
    episodes = [
        _Episode(task, options, list(prompt)) for (task, options), prompt in zip(tasks, prompts)
    ]
    _judge(trainer, episodes, ids)
    for _ in range(turns - 1):
        if not _any_process(trainer, any(one.is_open for one in episodes)):
            break
        _take_turn(trainer, episodes)
    return {
        "prompt_ids": prompt_ids,
        "completion_ids": ids,
        "logprobs": log_probs,
        "musacoder_reward": [one.reward(turns, is_training) for one in episodes],
    }


class _Episode:
    def __init__(self, task: str, options: Options | None, messages: list[dict[str, str]]) -> None:
        self.task = task
        self.options = options
        self.messages = messages
        self.judged: list[tuple[str, Judged]] = []
        self.has_room = True

    @property
    def is_open(self) -> bool:
        return self.has_room and episode.is_open(self.judged)

    def reward(self, turns: int, is_training: bool) -> Reward:
        scores = [one.reward for _, one in self.judged]
        if not is_training:
            return scores[0]
        if episode.is_unsupported(self.judged):
            return UNSUPPORTED
        return rules.reward_of_episode([rules.training_score(s) for s in scores], turns)

    def next_messages(self) -> list[dict[str, str]]:
        answer, judged = self.judged[-1]
        return episode.next_messages(self.messages, answer, judged.feedback)


def _is_cut(trainer: Any, ids: list[int]) -> bool:
    """True if an answer ended at a limit, without an end token, as in TRL's metrics."""
    ends = (*trainer.eos_token_ids, trainer.processing_class.pad_token_id)
    return not ids or ids[-1] not in ends


def _judge(trainer: Any, episodes: list[_Episode], ids: list[list[int]]) -> None:
    """Adds an answer with its verdict to each episode."""

    def judged(one: _Episode, tokens: list[int]) -> tuple[str, Judged]:
        answer = trainer.processing_class.decode(tokens, skip_special_tokens=True)
        if _is_cut(trainer, tokens):
            return answer, episode.cut_off(len(tokens))
        return answer, evaluate(one.task, answer, one.options)

    with ThreadPoolExecutor(_THREADS) as pool:
        for one, turn in zip(episodes, pool.map(judged, episodes, ids)):
            one.judged.append(turn)


def _take_turn(trainer: Any, episodes: list[_Episode]) -> None:
    asked = [one for one in episodes if one.is_open or trainer.accelerator.num_processes > 1]
    prompts = [one.next_messages() if one.is_open else one.messages for one in asked]
    prompt_ids, images, fields = trainer._tokenize_prompts(prompts)
    limit = _context_of(trainer)
    for one, ids in zip(asked, prompt_ids):
        if len(ids) + trainer.max_completion_length > limit:
            one.has_room = False
    if trainer.accelerator.num_processes == 1:
        chosen = [i for i, one in enumerate(asked) if one.has_room]
        asked = [asked[i] for i in chosen]
        prompts = [prompts[i] for i in chosen]
        prompt_ids = [prompt_ids[i] for i in chosen]
        if not asked:
            return
    else:
        # An episode without room for a prompt gets a short prompt as a placeholder.
        short = min(prompt_ids, key=len)
        prompt_ids = [ids if one.has_room else short for one, ids in zip(asked, prompt_ids)]
    found, _ = trainer._generate_single_turn(prompt_ids, images, fields, 1)
    answered = [i for i, one in enumerate(asked) if one.is_open]
    for i in answered:
        asked[i].messages = prompts[i]
    _judge(trainer, [asked[i] for i in answered], [found[i] for i in answered])


def _context_of(trainer: Any) -> int:
    limit = getattr(trainer.args, "vllm_max_model_length", None)
    config = trainer.accelerator.unwrap_model(trainer.model).config
    return int(limit or getattr(config, "max_position_embeddings", None) or 1 << 30)


def _any_process(trainer: Any, mine: bool) -> bool:
    flag = torch.tensor([int(mine)], device=trainer.accelerator.device)
    return bool(trainer.accelerator.gather(flag).any())


def _task_of(trainer: Any, prompt: list[dict[str, str]]) -> tuple[str, Options | None]:
    """The label and the verifier's options of the row with this prompt.

    TRL hands rollout functions the prompts only.
    """
    tasks = getattr(trainer, "_musacoder_tasks", None)
    if tasks is None:
        tasks = {}
        for rows in (trainer.train_dataset, trainer.eval_dataset):
            for row in rows if rows is not None else []:
                options = episode.options_of(row, row.get("metadata"), row.get("extra_info"))
                tasks[json.dumps(row["prompt"], sort_keys=True)] = (str(row["label"]), options)
        trainer._musacoder_tasks = tasks
    if not isinstance(prompt, list):
        raise ValueError("rollout: expected prompts as lists of messages")
    task = tasks.get(json.dumps(prompt, sort_keys=True))
    if task is None:
        raise ValueError(
            "rollout: no row of the data set has this prompt and a label; "
            "give rows of the forge's rl.jsonl"
        )
    found: tuple[str, Options | None] = task
    return found
