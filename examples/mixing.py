# SPDX-License-Identifier: Apache-2.0
"""Does `forge --mix` help a model that is weak in one family?

    python examples/mixing.py --out DIR [--gpu] [--devices cuda:0] [--minutes 8]

A model is made weak: it is trained on the forge's solutions of four families, from which nearly all
tasks of one family (--weak) are taken out. `bench` measures it on chains of operators that no
training data has. Then, under each of three seeds, the forge makes the same number of tasks twice,
with `--mix` of that benchmark and without; as many rows of each, in as many steps, train the model
on, and `bench` measures both on the same held-out tasks.

All stages can be killed and go on where they were; --minutes ends a call, and the same call goes
on. The table is in DIR/report.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from ladder import CUT_SHORT, Ladder, Size, read_arguments
from learn import fail, pool, say, shares_of, write_atomically

OPERATORS = (
    "relu,abs,neg,square,sigmoid,tanh,sum,mean,max,softmax,log_softmax,scale_shift,channel_bias"
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
    held_out: int = 12  # The number at most; half of them are of the weak family.
    held_samples: int = 1
    more: int = 24  # The number of tasks of each arm under each seed.
    more_steps: int = 60
    more_lr: float = 1e-3


GPU = Sizes(
    weak_tasks=8, shown=700, wide=400, held_out=200, more=100, more_steps=200, more_lr=5e-4,
    layers=8, width=256, heads=8, sft_steps=1500, batch_tokens=8192, sft_lr=1.5e-3,
)  # fmt: skip


Row = dict[str, Any]


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Mixing(Ladder):
    """The stages in one folder."""

    size: Sizes

    def drawn(self, name: str, tasks: int, seed: int, mix: object = "") -> bool:
        options = {"operators": self.size.operators, **({"mix": mix} if mix else {})}
        return self.forge(name, tasks, self.size.shown_depth, seed, 0, options)

    def make_weak(self) -> bool:
        """held_out.jsonl, and sft/model, which was shown next to nothing of the weak family."""
        s = self.size
        held = self.drawn("wide", s.wide, s.seed + 1, "balanced")
        if not held or not self.drawn("shown", s.shown, s.seed):
            return False
        if not (self.folder / "held_out.jsonl").exists():
            self.choose_tasks()
        rows = self.training_rows("shown")
        weak = dict.fromkeys(row["task"] for row in rows if s.weak in row["families"])
        left_out = set(list(weak)[s.weak_tasks :])
        rows = [row for row in rows if row["task"] not in left_out]
        return self.learn_from(self.written("weak.jsonl", rows))

    def choose_tasks(self) -> None:
        """Chains of several operators, each once; as many of the weak family as of others."""
        chains: dict[tuple[str, ...], Row] = {}
        for row in rows_of(self.folder / "wide/rl.jsonl"):
            chain = tuple(row["extra_info"]["operators"])
            if len(chain) > 1:
                chains.setdefault(chain, row)
        half = self.size.held_out // 2
        weak: list[Row] = []
        others: list[Row] = []
        for row in chains.values():
            is_weak = self.size.weak in row["extra_info"]["families"]
            (weak if is_weak else others).append(row)
        self.written("held_out.jsonl", weak[:half] + others[:half])

    def written(self, name: str, rows: list[Row]) -> Path:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        write_atomically(self.folder / name, text)
        return self.folder / name

    def training_rows(self, name: str) -> list[Row]:
        """A forge run's samples, without those of the held-out chains."""
        held = rows_of(self.folder / "held_out.jsonl")
        chains = {tuple(row["extra_info"]["operators"]) for row in held}
        rows = rows_of(self.folder / name / "sft.jsonl")
        return [row for row in rows if tuple(row["operators"]) not in chains]

    # ---- The arms --------------------------------------------------------------------------------

    def forge_arms(self, number: int) -> bool:
        """As many tasks with and without --mix, and as many rows of them, in data.jsonl."""
        s = self.size
        for arm in ARMS:
            mix = self.folder / "sft/held_out" if arm == "mixed" else ""
            if not self.drawn(f"{arm}/{number}/forge", s.more, s.seed + 1 + number, mix):
                return False
        rows = {arm: self.training_rows(f"{arm}/{number}/forge") for arm in ARMS}
        count = min(map(len, rows.values()))
        for arm, some in rows.items():
            self.written(f"{arm}/{number}/data.jsonl", random.Random(number).sample(some, count))
        return True

    def train_arm(self, number: int, arm: str) -> None:
        s, home = self.size, self.folder / arm / str(number)
        device = self.devices.get()
        try:
            learned = self.tune(self.folder / "sft/model", home / "data.jsonl", home / "run",
                                s.more_steps, s.more_lr, number, device)  # fmt: skip
            if learned and self.measure(home / "run/model", home / "held_out", device):
                say(f"{arm}, seed {number}: done")
        finally:
            self.devices.put(device)

    def run_arms(self, seeds: int) -> None:
        if not self.make_weak():
            return
        device = self.devices.get()
        is_measured = self.measure(self.folder / "sft/model", self.folder / "sft/held_out", device)
        self.devices.put(device)
        numbers = range(1, seeds + 1)
        if not is_measured or not all(self.forge_arms(number) for number in numbers):
            return
        with ThreadPoolExecutor(self.num_devices) as pool_of_devices:
            runs = [pool_of_devices.submit(self.train_arm, number, arm)
                    for number, arm in product(numbers, ARMS)]  # fmt: skip
        for run in runs:
            run.result()
        if not self.is_cut_short:
            self.write_table(seeds)

    def write_table(self, seeds: int) -> None:
        """Pass rates before, after each arm, and the paired difference of the arms, by group."""
        held = rows_of(self.folder / "held_out.jsonl")
        weak = {row["id"] for row in held if self.size.weak in row["extra_info"]["families"]}
        others = {row["id"] for row in held} - weak
        text = "| held-out tasks | number | before | mixed | unmixed | mixed - unmixed |\n"
        text += "|---|---|---|---|---|---|\n"
        for name, tasks in ((self.size.weak, weak), ("others", others)):
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
    arguments, size = read_arguments(
        argparse.ArgumentParser(description="Does forge --mix help a weak family?"), Sizes(), GPU
    )
    mixing = Mixing(arguments.out, size, arguments.devices, arguments.minutes)
    try:
        mixing.run_arms(arguments.seeds)
    except RuntimeError as error:
        fail(str(error))
    return CUT_SHORT if mixing.is_cut_short else 0


if __name__ == "__main__":
    sys.exit(main())
