#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TRL's GRPOTrainer over the OpenEnv environment, with a tiny model and answers from files.

    lab/hosts/trl_openenv.py --url http://localhost:8000 --task TASK.py ANSWER…

It needs trl, openenv and musacoder in one environment, and no GPU.  Two steps of GRPO: each rollout
is an episode, whose answers are the files in turn, and the reward is that of its last step.  It
prints the rewards that TRL was given, and fails where an episode without a score counts as one.
"""

from __future__ import annotations

import argparse
import math
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
    """What `rollout_func` calls: an episode for each prompt, with the next answer."""

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers", nargs="+", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--task", required=True, type=Path)
    arguments = parser.parse_args()
    answers = [f"```python\n{path.read_text()}\n```" for path in arguments.answers]
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
        logged = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    scored = [one for one in given if one is not None]
    print("rewards:", given, "logged:", logged)
    is_kept = given == rollouts.rewards and len(given) == 2 * GROUP
    mean = sum(scored) / len(scored) if scored else math.nan
    return 0 if is_kept and math.isclose(sum(logged) / len(logged), mean, abs_tol=1e-4) else 1


if __name__ == "__main__":
    raise SystemExit(main())
