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

import dataclasses
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

from musacoder import episode
from musacoder.rules import Failure, Group, RetryBuffer, Turn
from musacoder.slime import KEY, post_process_rewards, replay_prompt, setting

REPLAY = "musacoder_replay"  # The key of a replay's metadata that has the task's prompt.

# In fully asynchronous mode, slime passes no data source to the functions of its arguments.
_current: weakref.ref[RetryDataSource] | None = None


class RetryDataSource(RolloutDataSourceWithBuffer):  # type: ignore[misc]
    """slime's data source with replays in place of some prompts.

    A replay takes no prompt of the data set's order.  Groups that slime aborted and handed back
    (add_samples) come first.  Replays in groups that slime aborted and dropped, as it does with
    what it sampled beyond a batch, go back into the retry buffer.  Step s is the time between
    captures s - 1 and s.
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
        self._in_flight: dict[int, Failure] = {}  # Replays without verdicts, by group_index.
        self._is_rollout_over = False  # Groups in flight were handed back or dropped.
        self._lock = threading.Lock()  # Fully asynchronous mode draws and captures in two threads.
        self._tokenizer = load_tokenizer(args.hf_checkpoint, trust_remote_code=True)
        _current = weakref.ref(self)

    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        with self._lock:
            self._give_back_dropped()
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

    def _give_back_dropped(self) -> None:
        """After a rollout, returns replays of groups that were neither captured nor restarted."""
        if not self._is_rollout_over:
            return
        self._is_rollout_over = False
        kept = {group[0].group_index for group in self.buffer}
        for index in [index for index in self._in_flight if index not in kept]:
            self.retries.give_back(self._in_flight.pop(index))

    def _replay(self, failure: Failure) -> list[Sample]:
        metadata = {**failure.prompt["metadata"], REPLAY: failure.prompt["prompt"]}
        group = []
        for _ in range(self.args.n_samples_per_prompt):
            prompt = self._prompt_of(failure)
            label = failure.prompt["label"]
            sample = Sample(prompt=prompt, label=label, metadata=dict(metadata))
            sample.group_index = self.sample_group_index
            sample.index = self.sample_index
            self.sample_index += 1
            group.append(sample)
        self._in_flight[self.sample_group_index] = failure
        self.sample_group_index += 1
        return group

    def _prompt_of(self, failure: Failure) -> Any:
        options = getattr(self.args, "apply_chat_template_kwargs", None)
        prompt = failure.prompt["prompt"]
        return replay_prompt(self._tokenizer, prompt, failure.code, failure.feedback, options)

    def capture(self, groups: list[Any], is_rollout_over: bool = True) -> None:
        """Ends a step: failed groups go into the buffer, solved tasks leave it.

        is_rollout_over: False in fully asynchronous mode, where groups stay in flight.
        """
        with self._lock:
            flat = [_flat(group) for group in groups]
            answered = [_group_of(samples) for samples in flat]
            for samples, group in zip(flat, answered):
                if any(group.episodes):
                    self._in_flight.pop(samples[0].group_index, None)
            self.retries.remember(answered, self._step, self._fits)
            self._is_rollout_over |= is_rollout_over
            self._step += 1
            self._slot = 0

    def _fits(self, failure: Failure) -> bool:
        """True if a replay leaves the prompt within its limit."""
        text = self._prompt_of(failure)
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
            self._give_back_dropped()
            state = {
                "retries": self.retries.state(),
                "in_flight": {key: dataclasses.asdict(f) for key, f in self._in_flight.items()},
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
            self._in_flight = {key: Failure(**f) for key, f in state["in_flight"].items()}
            self._is_rollout_over = True  # Groups in flight ended with the process.

    def _path(self, folder: str, rollout_id: int | None) -> Path:
        return Path(folder) / "rollout" / f"musacoder_retries_{rollout_id}.pt"


def _group_of(samples: list[Sample]) -> Group:
    first = samples[0]
    metadata = {k: v for k, v in (first.metadata or {}).items() if k not in (KEY, REPLAY)}
    prompt = {
        "prompt": (first.metadata or {}).get(REPLAY, first.prompt),
        "metadata": metadata,
        "label": first.label,
    }
    turns = [(sample.metadata or {}).get(KEY, {}).get("turns", []) for sample in samples]
    return Group(
        episode.key_of(first.label, episode.options_of(metadata)),
        prompt,
        [[Turn(**turn) for turn in one] for one in turns],
    )


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
    source.capture(list(groups.values()), is_rollout_over=False)
    return post_process_rewards(args, samples)
