# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""Buffered Dynamic Retry for slime: tasks on which a whole group failed come back as repairs.

    --data-source-path musacoder.slime_data.RetryDataSource
    --rollout-all-samples-process-path musacoder.slime_data.capture

slime's fully asynchronous worker does not call the second.  There,
`--custom-reward-post-process-path musacoder.slime_data.post_process_and_capture` takes its place.

Settings, as in slime.py: `musacoder_bdr` (0.1), the probability that a prompt slot is a replay,
`musacoder_bdr_capacity` (256), `musacoder_bdr_replays` (2) a task.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

import torch
from slime.rollout.data_source import (
    RolloutDataSource,
    RolloutDataSourceWithBuffer,
)
from slime.utils.processing_utils import load_tokenizer
from slime.utils.types import Sample

from musacoder import rules
from musacoder.rules import Failure, RetryBuffer, Turn
from musacoder.slime import KEY, post_process_rewards, replay_prompt, setting

REPLAY = "musacoder_replay"  # In the metadata of a replay: the task's prompt without it.

# The functions of slime's arguments get no data source in fully asynchronous mode.
_current: weakref.ref[RetryDataSource] | None = None


class RetryDataSource(RolloutDataSourceWithBuffer):  # type: ignore[misc]
    """slime's data source with replays in place of some prompts.

    A replay takes no prompt of the data set's order.  Groups that slime aborted (add_samples) come
    first.  Step s is the time between captures s - 1 and s.
    """

    def __init__(self, args: Any) -> None:
        global _current
        super().__init__(args)
        self.retries = RetryBuffer(
            capacity=int(setting(args, "bdr_capacity", 256)),
            probability=setting(args, "bdr", 0.1),
            replays_max=int(setting(args, "bdr_replays", 2)),
            seed=int(getattr(args, "rollout_seed", 0)),
        )
        self._step = 0
        self._slot = 0
        self._lock = threading.Lock()  # Fully asynchronous mode draws and captures in two threads.
        self._tokenizer = load_tokenizer(args.hf_checkpoint, trust_remote_code=True)
        _current = weakref.ref(self)

    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        with self._lock:
            groups: list[list[Sample]] = self._get_samples_from_buffer(num_samples)
            drawn = [self._draw() for _ in range(num_samples - len(groups))]
            num_fresh = sum(failure is None for failure in drawn)
            fresh = iter(RolloutDataSource.get_samples(self, num_fresh))
            for failure in drawn:
                groups.append(next(fresh) if failure is None else self._replay(failure))
            return groups

    def _draw(self) -> Failure | None:
        self._slot += 1
        return self.retries.draw(self._step, self._slot - 1)

    def _replay(self, failure: Failure) -> list[Sample]:
        metadata = {**failure.prompt["metadata"], REPLAY: failure.prompt["prompt"]}
        group = []
        for _ in range(self.args.n_samples_per_prompt):
            prompt = self._prompt_of(failure)
            sample = Sample(prompt=prompt, label=failure.task, metadata=dict(metadata))
            sample.group_index = self.sample_group_index
            sample.index = self.sample_index
            self.sample_index += 1
            group.append(sample)
        self.sample_group_index += 1
        return group

    def _prompt_of(self, failure: Failure) -> Any:
        options = getattr(self.args, "apply_chat_template_kwargs", None)
        prompt = failure.prompt["prompt"]
        return replay_prompt(self._tokenizer, prompt, failure.code, failure.feedback, options)

    def capture(self, groups: list[Any]) -> None:
        """Ends a step: failed groups go into the buffer, solved replays leave it."""
        with self._lock:
            failures = []
            for number, group in enumerate(groups):
                failure = self._look_at(number, _flat(group))
                if failure is not None:
                    failures.append(failure)
            self.retries.insert(failures)
            self._step += 1
            self._slot = 0

    def _look_at(self, number: int, samples: list[Sample]) -> Failure | None:
        episodes = [
            [Turn(**turn) for turn in (sample.metadata or {}).get(KEY, {}).get("turns", [])]
            for sample in samples
        ]
        first = samples[0]
        metadata = {k: v for k, v in (first.metadata or {}).items() if k not in (KEY, REPLAY)}
        prompt = {"prompt": (first.metadata or {}).get(REPLAY, first.prompt), "metadata": metadata}
        scores = [turn.s for turns in episodes for turn in turns if turn.s is not None]
        if REPLAY in (first.metadata or {}) and scores and max(scores) >= rules.PASSED:
            self.retries.solved(first.label)
        fitting = [[turn for turn in turns if self._fits(prompt, turn)] for turns in episodes]
        if not rules.is_all_failed([[turn.s for turn in turns] for turns in episodes]):
            return None
        return rules.failure_of_group(first.label, prompt, fitting, self._step, number)

    def _fits(self, prompt: dict[str, Any], turn: Turn) -> bool:
        """Whether a replay of this answer leaves the prompt within its limit."""
        if turn.s is None or turn.stage is None:
            return False
        text = self._prompt_of(Failure("", turn.answer, turn.feedback, prompt=prompt))
        limit = getattr(self.args, "rollout_max_prompt_len", None)
        if text is None or limit is None:
            return text is not None
        if not isinstance(text, str):
            text = "".join(message["content"] for message in text)
        return bool(len(self._tokenizer.encode(text, add_special_tokens=False)) <= limit)

    def save(self, rollout_id: int) -> None:
        super().save(rollout_id)
        if not self.args.rollout_global_dataset:
            return
        path = self._path(self.args.save, rollout_id)
        with self._lock:
            state = {
                "retries": self.retries.state(),
                "step": self._step,
                "slot": self._slot,
                "aborted": [[sample.to_dict() for sample in group] for group in self.buffer],
            }
        torch.save(state, path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)

    def load(self, rollout_id: int | None = None) -> None:
        super().load(rollout_id)
        if not self.args.rollout_global_dataset or self.args.load is None:
            return
        path = self._path(self.args.load, rollout_id)
        if not path.exists():
            return
        state = torch.load(path)
        with self._lock:
            self.retries.restore(state["retries"])
            self._step, self._slot = state["step"], state["slot"]
            self.buffer = [[Sample.from_dict(one) for one in group] for group in state["aborted"]]

    def _path(self, folder: str, rollout_id: int | None) -> Path:
        return Path(folder) / "rollout" / f"musacoder_retries_{rollout_id}.pt"


def _flat(group: Any) -> list[Sample]:
    """A group's samples; slime has lists in it where one rollout became several samples."""
    return [sample for one in group for sample in (one if isinstance(one, list) else [one])]


def capture(args: Any, all_samples: list[Any], data_source: Any) -> None:
    """slime's hook after each rollout; it also sees the groups that the filter dropped."""
    # The stock loop hands over the data source's bound method get_samples.
    getattr(data_source, "__self__", data_source).capture(all_samples)


def post_process_and_capture(args: Any, samples: list[Any]) -> tuple[list[float], list[float]]:
    """slime.post_process_rewards, and the capture of BDR, for fully asynchronous rollouts."""
    source = None if _current is None else _current()
    if source is None:
        raise RuntimeError(
            "no RetryDataSource in this process; give slime "
            "--data-source-path musacoder.slime_data.RetryDataSource"
        )
    groups: dict[Any, list[Any]] = {}
    for sample in samples:
        groups.setdefault(sample.group_index, []).append(sample)
    source.capture(list(groups.values()))
    return post_process_rewards(args, samples)
