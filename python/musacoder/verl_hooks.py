# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped,misc,untyped-decorator"
"""The method for verl 0.9.1, which imports this module where

    VERL_USE_EXTERNAL_MODULES=musacoder.verl_hooks

is set for every process, including Ray's workers.  Then these options are available:

    actor_rollout_ref.rollout.agent.default_agent_loop=musacoder      episodes, PrimeEcho
    algorithm.adv_estimator=musacoder              advantage without samples that have no reward
    algorithm.rollout_correction.rollout_rs=mirror_pop      MirrorPop
    algorithm.rollout_correction.rollout_rs_threshold=0.05      its delta
    data.custom_cls.path=pkg://musacoder.verl_hooks data.custom_cls.name=RetryDataset      BDR

docs/trainers.md has the whole command line.  Settings are environment variables:
$MUSACODER_TURNS (3) and, for Buffered Dynamic Retry, $MUSACODER_BDR_FOLDER (a folder that all nodes
share), $MUSACODER_BDR (0.1), the probability that a prompt slot is a replay,
$MUSACODER_BDR_CAPACITY (256) and $MUSACODER_BDR_REPLAYS (2) a task.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import time
import uuid
from pathlib import Path
from typing import Any

import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
from verl.trainer.ppo import core_algos, rollout_corr_helper
from verl.utils.dataset.rl_dataset import RLHFDataset

from musacoder import Judged, episode, rules
from musacoder.client import evaluate_async
from musacoder.judged import Options
from musacoder.rules import Failure, Group, Reward, RetryBuffer, Turn
from musacoder.verl import UNSCORED, UNSUPPORTED, reward_of

REPLAY = "musacoder_replay"  # A member of extra_info: true for a replay.
ITEM = "musacoder_item"  # A member of extra_info: the row's number.
_EVALUATION_SPLITS = ("test", "val", "validation")


def _setting(name: str, default: float) -> float:
    return float(os.environ.get(f"MUSACODER_{name}", default))


# ---- Episodes -----------------------------------------------------------------------------------


@register("musacoder")
class Episode(AgentLoopBase):
    """Runs an episode: verl's engine answers, the service judges, its feedback is the next turn.

    Only the first turn is in the output and is trained; the reward is PrimeEcho's R.  A row of an
    evaluation (`extra_info.split` is "test" or the like, which RetryDataset sets for the validation
    files) has one turn, and its reward is the score.  An answer that was cut at its limit of tokens
    has the score -1.  An episode that could not be judged, or that the engine aborted, has the
    reward UNSCORED and no trained token; one that ends with an unsupported answer has UNSUPPORTED.
    """

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        began = time.monotonic()
        messages = [dict(message) for message in row["raw_prompt"]]
        extra = row.get("extra_info") or {}
        is_evaluation = extra.get("split") in _EVALUATION_SPLITS
        turns = 1 if is_evaluation else int(_setting("TURNS", 3))
        prompt_ids = await self.ct_build_initial_tokens(messages)
        first = await self._ask(prompt_ids, sampling_params)
        judged: list[tuple[str, Judged]] | None = None
        if first.stop_reason not in ("abort", "aborted"):
            task, options = row["reward_model"]["ground_truth"], episode.options_of(row, extra)
            judged = [await self._judge(task, options, prompt_ids, first)]
            if not await self._later_turns(task, options, messages, sampling_params, turns, judged):
                judged = None
        scores: list[Reward] = [None] if judged is None else [one.reward for _, one in judged]
        value = scores[0]
        if not is_evaluation:
            value = rules.reward_of_episode([rules.training_score(s) for s in scores], turns)
            if judged is not None:
                self._record(row, extra, judged)
        return self._output(prompt_ids, first, value, judged or [], time.monotonic() - began)

    async def _ask(self, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        return await self.server_manager.generate(
            request_id=uuid.uuid4().hex,
            prompt_ids=prompt_ids,
            sampling_params=dict(sampling_params),
        )

    async def _judge(
        self, task: str, options: Options | None, prompt_ids: list[int], output: Any
    ) -> tuple[str, Judged]:
        """An answer with its verdict."""
        answer = self._text(output.token_ids)
        if self._is_cut(prompt_ids, output):
            return answer, episode.cut_off(len(output.token_ids))
        return answer, await evaluate_async(task, answer, options)

    async def _later_turns(
        self,
        task: str,
        options: Options | None,
        messages: list[Any],
        params: dict[str, Any],
        turns: int,
        judged: list[tuple[str, Judged]],
    ) -> bool:
        """Adds the turns after the first to `judged`; False if the engine aborted a turn."""
        while len(judged) < turns and episode.is_open(judged):
            messages = episode.next_messages(messages, judged[-1][0], judged[-1][1].feedback)
            # A prompt of ct_build_initial_tokens would be cut at rollout.prompt_length.
            ids = _token_ids(self.tokenizer, messages, self.apply_chat_template_kwargs)
            if len(ids) + self.rollout_config.response_length > self._context():
                break
            output = await self._ask(ids, params)
            if output.stop_reason in ("abort", "aborted"):
                return False
            judged.append(await self._judge(task, options, ids, output))
        return True

    def _is_cut(self, prompt_ids: list[int], output: Any) -> bool:
        """True if an answer ended at a limit.  vLLM's stop_reason is "completed" there too."""
        ids = output.token_ids[: self.rollout_config.response_length]
        is_full = (
            output.stop_reason == "length"
            or len(ids) == self.rollout_config.response_length
            or len(prompt_ids) + len(ids) >= self._context()
        )
        return is_full and ids[-1:] != [self.tokenizer.eos_token_id]

    def _context(self) -> int:
        config = self.rollout_config
        limit = config.get("max_model_len", None)
        return int(limit or config.prompt_length + config.response_length)

    def _text(self, token_ids: list[int]) -> str:
        length = self.rollout_config.response_length
        return str(self.tokenizer.decode(token_ids[:length], skip_special_tokens=True))

    def _output(
        self, prompt_ids: list[int], first: Any, value: Reward, judged: list[Any], seconds: float
    ) -> AgentLoopOutput:
        # The reward goes on the last token, so there must be one.
        ids = first.token_ids[: self.rollout_config.response_length]
        log_probs = first.log_probs[: len(ids)] if first.log_probs else None
        is_unsupported = bool(judged) and episode.is_unsupported(judged)
        if not ids:
            ids, value, is_unsupported = [self.tokenizer.eos_token_id], None, False
            log_probs = None if first.log_probs is None else [0.0]
        output = AgentLoopOutput(
            prompt_ids=prompt_ids,
            response_ids=ids,
            response_mask=[int(value is not None or is_unsupported)] * len(ids),
            response_logprobs=log_probs,
            routed_experts=first.routed_experts,
            reward_score=reward_of(value, is_unsupported),
            num_turns=2 * max(1, len(judged)),
            metrics={"generate_sequences": seconds},
            extra_fields=dict(first.extra_fields),
        )
        last = judged[-1][1] if judged else None
        output.extra_fields |= {
            "turn_scores": [one.reward for _, one in judged],
            "tool_rewards": [],
            "reward_extra_info": {
                "score": output.reward_score,
                "scored": float(value is not None),
                "passed_first": float(bool(judged) and judged[0][1].passed),
                "passed": float(last is not None and last.passed),
                "outcome": last.outcome if last else "aborted",
            },
        }
        return output

    def _record(self, row: dict[str, Any], extra: dict[str, Any], judged: list[Any]) -> None:
        """Adds the episode to this process's file in the folder that RetryDataset reads."""
        folder = os.environ.get("MUSACODER_BDR_FOLDER")
        if not folder or ITEM not in extra or "uid" not in row:
            return
        task, options = row["reward_model"]["ground_truth"], episode.options_of(row, extra)
        line = {
            "group": str(row["uid"]),
            "samples": int(self.rollout_config.n),
            "item": int(extra[ITEM]),
            "replay": bool(extra.get(REPLAY)),
            "task": task,
            "turns": [dataclasses.asdict(turn) for turn in episode.turns_of(judged)],
            **(options or {}),
        }
        path = Path(folder, f"{socket.gethostname()}-{os.getpid()}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")


def _token_ids(tokenizer: Any, messages: list[Any], options: Any) -> list[int]:
    text = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, **dict(options or {})
    )
    return list(tokenizer.encode(text, add_special_tokens=False))


# ---- Advantage and MirrorPop --------------------------------------------------------------------


@core_algos.register_adv_est("musacoder")
def advantage(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    config: Any = None,
    index: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """rules.advantages of each group, on every trained token; returns are the same.

    `algorithm.norm_adv_by_std_in_grpo=False` leaves the division by the spread out (Dr.GRPO).  A
    sample with the reward UNSUPPORTED gets the least reward of its group.  A sample without an
    advantage (its reward is UNSCORED, or its group has too few rewards) is taken out of
    response_mask, in place.  Rewards, not masks, say which samples have none: MirrorPop has
    cleared the masks of sequences that still count in their group's mean.
    """
    scale_by_std = True if config is None else bool(config.get("norm_adv_by_std_in_grpo", True))
    totals = token_level_rewards.sum(dim=-1).tolist()
    groups: dict[Any, list[int]] = {}
    for i, key in enumerate(index):
        groups.setdefault(key, []).append(i)
    found = torch.zeros(len(totals), 1, device=response_mask.device)
    for members in groups.values():
        rewards = rules.with_minimum(
            [None if totals[i] in (UNSCORED, UNSUPPORTED) else totals[i] for i in members],
            [totals[i] == UNSUPPORTED for i in members],
        )
        for i, value in zip(members, rules.advantages(rewards, scale_by_std=scale_by_std)):
            if value is None:
                response_mask[i] = 0
            else:
                found[i] = value
    advantages = found * response_mask
    return advantages, advantages


_stock_rejection_mask = rollout_corr_helper.compute_rollout_rejection_mask


def rejection_mask(
    log_ratio: torch.Tensor,
    response_mask: torch.Tensor,
    rollout_rs: str = "token_k1",
    rollout_rs_threshold: str | float | None = None,
) -> tuple[torch.Tensor, dict[str, float]]:
    """verl's function with one more option: "mirror_pop", whose threshold is delta."""
    if rollout_rs != "mirror_pop":
        found: tuple[torch.Tensor, dict[str, float]] = _stock_rejection_mask(
            log_ratio, response_mask, rollout_rs, rollout_rs_threshold
        )
        return found
    if rollout_rs_threshold is None:
        raise ValueError("rollout_rs=mirror_pop: set rollout_rs_threshold to delta, such as 0.05")
    # A NaN in the ratio counts as an unknown generator log-probability: the token is not counted.
    zero = torch.zeros_like(log_ratio)
    kept, drift = rules.mirror_pop(zero, -log_ratio, response_mask, float(rollout_rs_threshold))
    has_tokens = response_mask.sum(dim=-1) > 0
    count = max(1, int(has_tokens.sum()))
    metrics = {
        "mirror_pop_rejected": float((has_tokens & ~kept).sum()) / count,
        "mirror_pop_drift": float(drift[has_tokens].sum()) / count,
    }
    return response_mask * kept.unsqueeze(-1).to(response_mask.dtype), metrics


rollout_corr_helper.compute_rollout_rejection_mask = rejection_mask


# ---- Buffered Dynamic Retry ---------------------------------------------------------------------


class RetryDataset(RLHFDataset):
    """verl's data set with replays of failed answers in place of some prompts.

    Episodes reach it through files in $MUSACODER_BDR_FOLDER: verl's trainer of version 1 calls no
    hook of the data set, and its agent loops are other processes.  Needs
    data.dataloader_num_workers=0.  The buffer is in the data loader's checkpoint.
    """

    def __init__(self, data_files: Any, tokenizer: Any, config: Any, *args: Any, **kw: Any) -> None:
        super().__init__(data_files, tokenizer, config, *args, **kw)
        train, val = (_files(config.get(name)) for name in ("train_files", "val_files"))
        self._is_evaluation = _files(data_files) == val and train != val
        self._folder = os.environ.get("MUSACODER_BDR_FOLDER")
        if not self._is_evaluation and not self._folder:
            raise ValueError("RetryDataset: set $MUSACODER_BDR_FOLDER to a folder all nodes share")
        if not self._is_evaluation and config.get("dataloader_num_workers", 0):
            raise ValueError("RetryDataset: set data.dataloader_num_workers=0")
        self._retries = RetryBuffer(
            capacity=int(_setting("BDR_CAPACITY", 256)),
            probability=_setting("BDR", 0.1),
            replays_max=int(_setting("BDR_REPLAYS", 2)),
            seed=int(config.get("seed", None) or 0),
        )
        self._num_prompts = 0
        self._read_to: dict[str, int] = {}  # Bytes of each file that were read.
        self._open: dict[str, list[dict[str, Any]]] = {}  # Episodes of groups that are not whole.

    def __getitem__(self, item: int) -> dict[str, Any]:
        if self._is_evaluation:
            row = super().__getitem__(item)
            return {**row, "extra_info": {**row["extra_info"], "split": "test"}}
        step, slot = divmod(self._num_prompts, int(self.config.get("train_batch_size", 1)))
        self._num_prompts += 1
        if slot == 0:
            self._read_episodes(step)
        failure = self._retries.draw(step, slot)
        item = item if failure is None else failure.prompt
        row = super().__getitem__(item)
        extra = {**row["extra_info"], ITEM: int(item), REPLAY: failure is not None}
        extra["split"] = "train"
        row = {**row, "extra_info": extra}
        if failure is not None:
            row["raw_prompt"] = episode.replay_messages(
                row["raw_prompt"], failure.code, failure.feedback
            )
        return row

    def _read_episodes(self, step: int) -> None:
        groups = []
        for path in sorted(Path(str(self._folder)).glob("*.jsonl")):
            for line in self._new_lines(path):
                group = self._open.setdefault(line["group"], [])
                group.append(line)
                if len(group) == line["samples"]:
                    groups.append(_group_of(self._open.pop(line["group"])))
        # The episodes of the step before are read at the beginning of this one.
        self._retries.remember(groups, max(0, step - 1), self._fits)

    def _new_lines(self, path: Path) -> list[dict[str, Any]]:
        with path.open("rb") as stream:
            stream.seek(self._read_to.get(path.name, 0))
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]  # The rest is still being written.
        self._read_to[path.name] = self._read_to.get(path.name, 0) + len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def _fits(self, failure: Failure) -> bool:
        messages = super().__getitem__(failure.prompt)["raw_prompt"]
        replay = episode.replay_messages(messages, failure.code, failure.feedback)
        ids = _token_ids(self.tokenizer, replay, self.apply_chat_template_kwargs)
        return len(ids) <= int(self.max_prompt_length)

    def state_dict(self) -> dict[str, Any]:
        return {
            "retries": self._retries.state(),
            "num_prompts": self._num_prompts,
            "read_to": dict(self._read_to),
            "open": {key: list(group) for key, group in self._open.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._retries.restore(state["retries"])
        self._num_prompts = state["num_prompts"]
        self._read_to, self._open = dict(state["read_to"]), dict(state["open"])


def _files(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else [str(name) for name in names or []]


def _group_of(lines: list[dict[str, Any]]) -> Group:
    first = lines[0]
    return Group(
        episode.key_of(first["task"], episode.options_of(first)),
        first["item"],
        [[Turn(**turn) for turn in line["turns"]] for line in lines],
    )
