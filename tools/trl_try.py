#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Some steps of TRL's GRPOTrainer on a tiny random model, with real verdicts as rewards.

    MUSACODER=build/dev/bin/musacoder python tools/trl_try.py [--steps 5]

Needs trl and its dependencies (PyPI). The tokenizer is made here of bytes, and the model of random
weights, so that nothing is downloaded. A model that knows nothing writes no kernel: every third
completion is therefore replaced by a right answer and every other third by a wrong one, between
generation and reward, which shows that rewards reach the loss. On a machine without a GPU set
MUSACODER_OPTIONS="--backend cpu".
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

import musacoder.trl  # noqa: E402

TASK = (ROOT / "tasks/reduction/row_sum.py").read_text()
RIGHT = (ROOT / "tests/corpus/honest/reduction/row_sum.py").read_text()
WRONG = (ROOT / "examples/row_sum_race.py").read_text()
GENERATIONS = 6
rewards_seen: list[list[float | None]] = []


def reward(completions: list[str], **columns: Any) -> list[float | None]:
    answers = [(RIGHT, WRONG, text)[i % 3] for i, text in enumerate(completions)]
    found = musacoder.trl.reward(answers, **columns)
    rewards_seen.append(found)
    return found


def byte_tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {text: i for i, text in enumerate(["<pad>", "<eos>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )


def tiny_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return Qwen2ForCausalLM(config)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    tokenizer = byte_tokenizer()
    model = tiny_model(tokenizer)
    before = model.model.embed_tokens.weight.detach().clone()
    # Rows as the forge's rl.jsonl has them.
    rows = Dataset.from_list(
        [{"prompt": "Write a kernel.", "reward_model": {"ground_truth": TASK}}] * 8
    )
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            max_steps=arguments.steps,
            num_generations=GENERATIONS,
            per_device_train_batch_size=GENERATIONS,
            max_completion_length=16,
            learning_rate=1e-3,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            use_cpu=not torch.cuda.is_available(),
            bf16=False,
        )
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=config,
            train_dataset=rows,
            processing_class=tokenizer,
        )
        trainer.train()
    moved = (model.model.embed_tokens.weight.detach().cpu() - before).abs().max().item()
    print(f"{len(rewards_seen)} steps; rewards {rewards_seen}; weights moved by {moved:.2e}")
    keys = ("musacoder/passed", "reward", "reward_std", "grad_norm")
    for log in trainer.state.log_history[: arguments.steps]:
        print({key: log[key] for key in log if key.endswith(keys)})
    right = all(found[::3] == [1.0] * 2 and found[1::3] == [-1.0] * 2 for found in rewards_seen)
    return 0 if right and len(rewards_seen) == arguments.steps and moved > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
