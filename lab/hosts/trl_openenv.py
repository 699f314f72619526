#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TRL's GRPOTrainer over the OpenEnv environment, with a tiny model and answers from files.

    lab/hosts/trl_openenv.py --url http://localhost:8000 --task TASK.py ANSWER…

It needs trl, openenv and musacoder in one environment, and no GPU.  Two steps of GRPO: each rollout
is an episode, whose answer is the next file (a .py is put into a fence), and its reward is that of
its last step.  It prints the rewards and advantages of TRL, and fails where an episode without a
score counts as one: it must not be in the mean that is logged, nor in its group's, and its
advantage must be 0.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

from datasets import Dataset  # type: ignore
from musacoder.openenv import KernelAction, KernelEnv
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # type: ignore
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # type: ignore
from trl import GRPOConfig, GRPOTrainer  # type: ignore

GROUP = 4


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: index for index, word in enumerate(["<pad>", "<end>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(words, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", padding_side="left"
    )


def tiny_model(size: int) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=size, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                    num_attention_heads=2, max_position_embeddings=32768)
    )  # fmt: skip


class Rollouts:
    """The function for `rollout_func`: an episode for each prompt, with the next answer."""

    def __init__(self, url: str, task: str, answers: list[str]) -> None:
        self._url = url
        self._task = task
        self._answers = answers
        self._count = 0
        self.rewards: list[float | None] = []

    def __call__(self, prompts: list[str], trainer: GRPOTrainer) -> dict[str, list[Any]]:
        tokenizer = trainer.processing_class
        out: dict[str, list[Any]] = {
            name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "env_reward")
        }
        for _ in prompts:
            answer = self._answers[self._count % len(self._answers)]
            self._count += 1
            with KernelEnv(base_url=self._url, message_timeout_s=600).sync() as env:
                prompt = env.reset(task=self._task, turns=1).observation.prompt
                reward = env.step(KernelAction(answer=answer)).reward
            ids = tokenizer(answer)["input_ids"] + [tokenizer.eos_token_id]
            out["prompt_ids"].append(tokenizer(prompt)["input_ids"])
            out["completion_ids"].append(ids)
            out["logprobs"].append([0.0] * len(ids))
            out["env_reward"].append(reward)
            self.rewards.append(reward)
        return out


def mean(rewards: list[float | None]) -> float:
    """The mean of those that were scored."""
    scored = [one for one in rewards if one is not None]
    return statistics.mean(scored) if scored else math.nan


def advantages_of(rewards: list[float | None]) -> list[float]:
    """A group's advantages; 0 for an answer without a score, and where only one has one."""
    scored = [one for one in rewards if one is not None]
    scale = (statistics.stdev(scored) if len(scored) > 1 else 0.0) + 1e-4
    return [0.0 if one is None else (one - mean(rewards)) / scale for one in rewards]


def are_close(found: list[float], wanted: list[float]) -> bool:
    def is_close(a: float, b: float) -> bool:
        return math.isclose(a, b, abs_tol=1e-3) or (math.isnan(a) and math.isnan(b))

    return len(found) == len(wanted) and all(map(is_close, found, wanted))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers", nargs="+", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--task", required=True, type=Path)
    arguments = parser.parse_args()
    answers = [f"```python\n{path.read_text()}\n```" if path.suffix == ".py" else path.read_text()
               for path in arguments.answers]  # fmt: skip
    rollouts = Rollouts(arguments.url, arguments.task.read_text(), answers)
    given: list[float | None] = []

    def reward(completions: list[str], env_reward: list[float | None], **_: Any) -> Any:
        given.extend(env_reward)
        return env_reward

    tokenizer = tiny_tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder, max_steps=2, per_device_train_batch_size=GROUP, use_cpu=True,
            num_generations=GROUP, max_completion_length=16384, report_to=[], bf16=False,
            save_strategy="no", logging_steps=1,
        )  # fmt: skip
        trainer = GRPOTrainer(
            model=tiny_model(len(tokenizer)),
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_dict({"prompt": ["kernel"] * 2}),
            processing_class=tokenizer,
            rollout_func=rollouts,
        )
        trainer.train()
        rows = [row["reward"] for row in trainer.state.log_history if "reward" in row]
        logged = [math.nan if one is None else one for one in rows]  # None: no reward in a group.
        advantages = list(trainer._logs["advantages"])  # Those of the last step.
    print("rewards:", given, "logged:", logged, "advantages:", advantages)
    groups = [given[:GROUP], given[GROUP:]]
    is_kept = given == rollouts.rewards and len(given) == 2 * GROUP
    is_right = are_close(logged, [mean(group) for group in groups])
    return 0 if is_kept and is_right and are_close(advantages, advantages_of(groups[1])) else 1


if __name__ == "__main__":
    raise SystemExit(main())
