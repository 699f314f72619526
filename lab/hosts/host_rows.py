#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""Rows of `forge --dialect both` through the reward hooks of slime, verl and TRL, on the CPU.

    musacoder forge --tasks 60 --seed 1 --bugs --dialect both --out rows
    PYTHONPATH=python python lab/hosts/host_rows.py rows --rows 200 --hosts slime,verl,trl

A right and a wrong answer to each row come from the forge's repairs.  A right one must earn more
than 0, a wrong one -1 or what q earns, each in its row's dialect; the task is the same in both.
The verifier is a child of this process ($MUSACODER, $MUSACODER_OPTIONS).  Hosts that ask the same
question share its verdict.  slime's classes and the engines are the stand-ins of the goldens.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import math
import sys
import threading
import types
from pathlib import Path
from typing import Any
from unittest import mock

import host_goldens  # noqa: F401  It finds the modules of the next lines.
import hosts

from musacoder import Judged, Program

Row = dict[str, Any]
Table = list[tuple[Row, str, bool]]  # A row of rl.jsonl, an answer, and whether it is right.

TOKENS_MAX = 1 << 15  # A token is a byte here.


def rows_of(folder: Path, count: int) -> Table:
    """The same number of rows of each dialect and kind of answer."""
    lines = [json.loads(line) for line in (folder / "rl.jsonl").read_text().splitlines()]
    prompts = {json.dumps(row["prompt"]): row for row in lines}
    kinds: dict[tuple[str, bool], Table] = collections.defaultdict(list)
    with (folder / "sft.jsonl").open() as stream:
        for line in stream:
            sample = json.loads(line)
            first = next(i for i, m in enumerate(sample["messages"]) if m["role"] == "assistant")
            row = prompts.get(json.dumps(sample["messages"][:first]))
            if sample["kind"] != "repair" or row is None:
                continue
            for i, is_right in ((first, False), (-1, True)):
                answer = sample["messages"][i]["content"]
                kinds[row["dialect"], is_right].append((row, answer, is_right))
    return [found for kind in sorted(kinds) for found in kinds[kind][: count // 4]]


class Verifier:
    """musacoder.evaluate and evaluate_async, with one verdict for equal questions."""

    def __init__(self) -> None:
        self._program = Program()
        self._lock = threading.Lock()
        self._replies: dict[str, Any] = {}

    def evaluate(self, task: str, answer: str, options: Any = None) -> Judged:
        from musacoder.judged import judged_of, question_of

        question = question_of(task, answer, options)
        with self._lock:
            key = json.dumps(question, sort_keys=True)
            if key not in self._replies:
                self._replies[key] = self._program.ask(question)
        return judged_of(self._replies[key].result())

    async def evaluate_async(self, task: str, answer: str, options: Any = None) -> Judged:
        return await asyncio.to_thread(self.evaluate, task, answer, options)


def slime_rewards(table: Table, verifier: Verifier) -> list[float]:
    hosts.prepare_slime()
    from slime.utils.types import Sample

    from musacoder import slime

    async def reward(row: Row, answer: str) -> float:
        sample = Sample(prompt="", label=row["label"], metadata=dict(row["metadata"]))
        sample.response, sample.status = answer, Sample.Status.COMPLETED
        return await slime.reward(types.SimpleNamespace(), sample)

    async def rewards() -> list[float]:
        return list(await asyncio.gather(*(reward(row, answer) for row, answer, _ in table)))

    with mock.patch.object(slime, "evaluate_async", verifier.evaluate_async):
        return asyncio.run(rewards())


def verl_rewards(table: Table, verifier: Verifier) -> list[float]:
    import verl_goldens

    from musacoder import verl_hooks

    tokenizer = host_goldens.byte_tokenizer()
    config = verl_goldens.config_of()
    sizes = {"prompt_length": TOKENS_MAX, "response_length": TOKENS_MAX}
    config.actor_rollout_ref.rollout.update({**sizes, "max_model_len": 2 * TOKENS_MAX})

    async def reward(row: Row, answer: str) -> float:
        worker = verl_goldens.worker_of(config, verl_goldens.Server(tokenizer, answer))
        one = {name: row[name] for name in ("reward_model", "extra_info", "dialect")}
        batch = await verl_goldens.run_rows(worker, [{**one, "raw_prompt": row["prompt"]}])
        return float(batch.batch["rm_scores"].sum())

    async def rewards() -> list[float]:
        return list(await asyncio.gather(*(reward(row, answer) for row, answer, _ in table)))

    with (
        mock.patch.object(verl_hooks, "evaluate_async", verifier.evaluate_async),
        mock.patch.object(verl_goldens, "RESPONSE_LENGTH", TOKENS_MAX),
        mock.patch.dict("os.environ", MUSACODER_TURNS="1"),
    ):
        return asyncio.run(rewards())


def trl_rewards(table: Table, verifier: Verifier) -> list[float]:
    import trl_goldens

    from musacoder import trl_trainer

    tokenizer = host_goldens.byte_tokenizer()
    ids = [[*tokenizer.encode(answer), tokenizer.eos_token_id] for _, answer, _ in table]
    trainer = types.SimpleNamespace(
        model=types.SimpleNamespace(training=True),
        accelerator=trl_goldens.Accelerator(),
        train_dataset=[row for row, _, _ in table],
        eval_dataset=None,
        num_generations=1,
        processing_class=tokenizer,
        eos_token_ids=[tokenizer.eos_token_id],
        _tokenize_prompts=lambda prompts: ([[0]] * len(prompts), None, {}),
        _generate_single_turn=lambda *_: (ids, None),
    )
    with (
        mock.patch.object(trl_trainer, "evaluate", verifier.evaluate),
        mock.patch.dict("os.environ", MUSACODER_TURNS="1"),
    ):
        found = trl_trainer.rollout([row["prompt"] for row, _, _ in table], trainer)
    rewards = trl_trainer.episode_reward([], found["musacoder_reward"])
    return [math.nan if reward is None else reward for reward in rewards]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the forge")
    parser.add_argument("--rows", type=int, default=200, help="a quarter of each dialect and kind")
    parser.add_argument("--hosts", default="slime,verl,trl")
    arguments = parser.parse_args()
    table = rows_of(arguments.folder, arguments.rows)
    verifier = Verifier()
    ways = {"slime": slime_rewards, "verl": verl_rewards, "trl": trl_rewards}
    num_wrong = 0
    for host in arguments.hosts.split(","):
        counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
        for (row, answer, is_right), reward in zip(table, ways[host](table, verifier), strict=True):
            is_as_expected = reward > 0 if is_right else reward < 0
            kind = "right" if is_right else "wrong"
            counts[row["dialect"], kind, "as expected" if is_as_expected else "not"] += 1
            if not is_as_expected:
                print(f"{host}: {row['id']}, {kind}: {reward}\n{answer[:200]}")
        print(f"{host}: " + "; ".join(f"{n} {' '.join(key)}" for key, n in sorted(counts.items())))
        num_wrong += sum(n for key, n in counts.items() if key[2] == "not")
    return 1 if num_wrong or not table else 0


if __name__ == "__main__":
    sys.exit(main())
