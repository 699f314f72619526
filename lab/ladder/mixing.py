#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `forge --mix` help a model that is weak in one family?

    python lab/ladder/mixing.py --out DIR [--gpu] [--devices cuda:0] [--minutes 8]

A model is made weak: it is trained on the forge's solutions of four families, from which nearly all
tasks of one family (--weak) are taken out. `bench` measures it on structures that the forge holds
out of all training data. Then, under each of three seeds, the forge makes the same number of tasks
twice, with `--mix` of that benchmark and without; as many rows of each, in as many steps, train the
model on, and `bench` measures both on the same held-out tasks.

All stages can be killed and go on where they were; --minutes ends a call, and the same call goes
on. The table is in DIR/report.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from ladder import Ladder, Size, end_of, read_arguments
from learn import Stage, fail, pool, run_stages, say, shares_of, write_atomically

OPERATORS = (
    "relu,abs,neg,square,sigmoid,tanh,exp,leaky_relu,silu,sum,mean,max,min,sum_mid,mean_mid,"
    "scale_shift,channel_bias,outer_add,softmax,log_softmax"
)
ARMS = ("mixed", "unmixed")


@dataclasses.dataclass(frozen=True)
class Sizes(Size):
    """Everything that the table depends on."""

    families: str = "elementwise,broadcast,reduction,softmax"
    operators: str = OPERATORS
    weak: str = "softmax"
    weak_tasks: int = 2  # The number of weak-family tasks that the first model is trained on.
    shown: int = 60
    shown_depth: int = 2
    wide: int = 24  # The number to draw the held-out tasks from, all families alike.
    held_share: float = 0.3  # The share of the structures.
    held_out: int = 12  # The number at most; half of them are of the weak family.
    held_samples: int = 1
    layers: int = 3
    width: int = 128
    heads: int = 4
    sft_steps: int = 600
    batch_tokens: int = 1024
    sft_lr: float = 4e-3
    tokens_max: int = 640
    more: int = 24  # The number of tasks of each arm under each seed.
    more_steps: int = 60
    more_lr: float = 1e-3


GPU = Sizes(
    weak_tasks=8, shown=700, shown_depth=3, wide=600, held_out=160, more=80, more_steps=150,
    more_lr=5e-4, layers=8, width=256, heads=8, sft_steps=1500, batch_tokens=16384, sft_lr=1.5e-3,
    tokens_max=1024,
)  # fmt: skip


Row = dict[str, Any]


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Mixing(Ladder):
    """The stages in one folder."""

    size: Sizes

    def forged(self, name: str, tasks: int, seed: int, mix: object = "") -> Stage:
        options = {"mix": mix} if mix else {}
        return self.forge(name, tasks, self.size.shown_depth, seed, options)

    def weak_stages(self) -> list[Stage]:
        """held_out.jsonl, and sft/model, which was shown next to nothing of the weak family."""
        s, home = self.size, self.folder
        return [
            self.forged("wide", s.wide, s.seed + 1, "balanced"),
            self.forged("shown", s.shown, s.seed),
            Stage("held-out tasks", home / "held_out.jsonl", self.choose_held_out),
            Stage("rows of shown tasks", home / "shown.jsonl", self.write_shown),
            *self.first_stages(home, s.sft_steps),
            Stage("bench sft", home / "sft/held_out/summary.json", self.bench_first),
        ]

    def write_shown(self) -> None:
        s = self.size
        rows = rows_of(self.folder / "shown/sft.jsonl")
        weak = dict.fromkeys(row["task"] for row in rows if s.weak in row["families"])
        left_out = set(list(weak)[s.weak_tasks :])
        self.write_rows("shown.jsonl", [row for row in rows if row["task"] not in left_out])

    def choose_held_out(self) -> None:
        """The same number of tasks of the weak family and of others."""
        half = self.size.held_out // 2
        groups: dict[bool, list[Row]] = {True: [], False: []}
        for row in rows_of(self.folder / "wide/test.jsonl"):
            groups[self.size.weak in row["extra_info"]["families"]].append(row)
        self.write_rows("held_out.jsonl", [row for some in groups.values() for row in some[:half]])

    def write_rows(self, name: str, rows: list[Row]) -> None:
        write_atomically(self.folder / name, "".join(json.dumps(row) + "\n" for row in rows))

    # ---- The arms --------------------------------------------------------------------------------

    def bench_first(self) -> None:
        with self.free_device() as device:
            self.bench(self.folder / "sft/model", self.folder / "sft/held_out", device,
                       os.cpu_count() or 1)  # fmt: skip

    def bench(self, model: Path, out: Path, device: str, jobs: int) -> None:
        """Runs `bench`; the forge reads from its run which tasks a model fails."""
        s = self.size
        if not (out / "summary.json").exists():
            self.run("musacoder", "bench", options={
                "model": model, "suite": self.folder / "held_out.jsonl", "samples": s.held_samples,
                "temperature": 1, "max-tokens": s.tokens_max, "seed": s.seed, "backend": "cpu",
                "device": device, "batch": 256, "jobs": jobs, "out": out})  # fmt: skip

    def arm_stages(self, number: int) -> list[Stage]:
        """The same number of tasks with and without --mix, and of rows in data.jsonl."""
        seed, tasks = self.size.seed + 1 + number, self.size.more
        return [
            self.forged(f"mixed/{number}/forge", tasks, seed, self.folder / "sft/held_out"),
            self.forged(f"unmixed/{number}/forge", tasks, seed),
            Stage(f"rows of seed {number}", self.folder / f"unmixed/{number}/data.jsonl",
                  partial(self.choose_rows, number)),
        ]  # fmt: skip

    def choose_rows(self, number: int) -> None:
        s = self.size
        rows = {arm: rows_of(self.folder / f"{arm}/{number}/forge/sft.jsonl") for arm in ARMS}
        count = min(map(len, rows.values()))
        for arm, some in rows.items():
            chosen = random.Random(number).sample(some, count)
            self.write_rows(f"{arm}/{number}/data.jsonl", chosen)
            num_weak = sum(s.weak in row["families"] for row in chosen)
            say(f"{arm}, seed {number}: {num_weak} of {count} rows are of {s.weak}")

    def train_arm(self, number: int, arm: str) -> None:
        s, home = self.size, self.folder / arm / str(number)
        with self.free_device() as device:
            self.tune(self.folder / "sft/model", home / "data.jsonl", home / "run",
                      s.more_steps, s.more_lr, number, device)  # fmt: skip
            self.bench(home / "run/model", home / "held_out", device, self.jobs)
        say(f"{arm}, seed {number}: done")

    def run_arms(self, seeds: int) -> bool:
        numbers = range(1, seeds + 1)
        run_stages(self.weak_stages() + [one for n in numbers for one in self.arm_stages(n)])
        with ThreadPoolExecutor(self.num_devices) as pool_of_devices:
            runs = [pool_of_devices.submit(self.train_arm, number, arm)
                    for number, arm in product(numbers, ARMS)]  # fmt: skip
        for run in runs:
            run.result()
        self.write_table(seeds)
        return True

    def write_table(self, seeds: int) -> None:
        """Pass rates before, after each arm, and the paired difference of the arms, by group."""
        held = rows_of(self.folder / "held_out.jsonl")
        weak = {row["id"] for row in held if self.size.weak in row["extra_info"]["families"]}
        others = {row["id"] for row in held} - weak
        text = "| held-out tasks | number | before | mixed | unmixed | mixed - unmixed |\n"
        text += "|---|---|---|---|---|---|\n"
        for name, tasks in ((self.size.weak, weak), ("others", others)):
            if not tasks:
                fail(f"no held-out task is of {name}: more --wide tasks")
            text += f"| {name} | {len(tasks)} | {self.cells(tasks, seeds)} |\n"
        write_atomically(self.folder / "report.md", text)
        print(text, end="")

    def cells(self, tasks: set[str], seeds: int) -> str:
        def of_tasks(folder: Path) -> dict[str, float]:
            return {id: share for id, share in shares_of(folder).items() if id in tasks}

        runs = {arm: [of_tasks(self.folder / arm / str(number) / "held_out")
                      for number in range(1, seeds + 1)] for arm in ARMS}  # fmt: skip
        each = [{id: one[id] - other[id] for id in one.keys() & other.keys()}
                for one, other in zip(*runs.values())]  # fmt: skip
        before = of_tasks(self.folder / "sft/held_out")
        rates = [rate([before]), *(rate(some) for some in runs.values())]
        return " | ".join([*rates, pool(dict.fromkeys(sorted(before), 0.0), each)])


def rate(runs: list[dict[str, float]]) -> str:
    return ", ".join(f"{100 * sum(run.values()) / len(run):.1f} %" for run in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description="Does forge --mix help a weak family?")
    arguments, size = read_arguments(parser, Sizes(), GPU, "mixing")
    mixing = Mixing(arguments.out, size, arguments.devices, arguments.minutes)
    return end_of(lambda: mixing.run_arms(arguments.seeds))


if __name__ == "__main__":
    sys.exit(main())
