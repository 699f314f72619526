#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The experiments of the ladder: what does each rule of reinforcement learning give?

    ./run.sh ladder [--out DIR] [--gpu] [--only A,D] [--seeds 3]
        [--devices cuda:0,cuda:1]

All begin with one model: fine-tuned on the forge's solutions to chains of operators and, with
--faulty, on wrong ones too, as a model that reads the web is, so that it answers a third to a half
of other chains. Each arm of an experiment trains it under each seed on tasks that no solution was
shown for and that four tries answered both right and wrong, and is measured by several answers to
each of the same held-out tasks, judged by MooreEval with all checks.

    A  RL's gain: RL, one update a step, shuffled rewards, and RFT with as many verdicts
    B  speed: RL whose reward has the measured speed-up, on a GPU, of tasks with sums and means over
       the rows of large tensors; and RFT with as many verdicts, which sees no speed
    C  turns, from a model that also saw repairs of its own failures: does feedback help before RL;
       RL of up to three turns, on fresh tasks, with all rules, without PrimeEcho, and without BDR
    D  a generator that lags behind: no rule, the signed mean, MirrorPop
    U  one, two and four updates a step where the best policy is known: launches of 64 threads
    H  turns where feedback has what the task does not: each task's device runs blocks of one size,
       and only feedback says which. RL of two turns with Buffered Dynamic Retry, with replays of
       the task alone, and without replays
    P  there, without PrimeEcho: the best turn's reward, and the first turn's, with those replays
    M  H's first arm where MooreEval also judges each answer whose blocks are right
    R  RL after RFT, from RFT's model, on fresh tasks: RL, shuffled rewards, RFT once more, and
       fine-tuning on the forge's right answers to them

A run trains on one device of --devices; as many runs go at once. Every stage can be killed and goes
on where it was; --minutes ends a call, and the same call goes on. The tables are in DIR/report.md,
the training curves in DIR/curves-A.png and so on. A device may be named several times: as many
runs share it. MooreEval judges all answers, where times do not count on the ptx device.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from ladder_blocks import shown_rows
from ladder_report import Held, Row, training_curve_of, held_of, line_of, row_of, titles_of
from learn import (
    BIN,
    ROOT,
    UNANSWERED,
    Stage,
    add_settings,
    changed_settings,
    claim,
    fail,
    lines_of,
    make_tokenizer,
    run_stages,
    say,
    write_atomically,
)

CUT_SHORT = 3
Options = Mapping[str, object]


@dataclasses.dataclass(frozen=True)
class Size:
    """All that the tables depend on."""

    families: str = "elementwise,reduction"
    operators: str = ""  # Empty: all operators of these families.
    shown: int = 1200  # Tasks whose solutions are shown.
    shown_depth: int = 4
    bugs_share: float = 0.4  # Share of shown tasks with repairs of failed answers.
    faulty: int = 0  # Times that each of these failed answers is shown as if it were right.
    wide: int = 400  # Tasks from which those of RL and the held-out ones are drawn.
    wide_depth: int = 4
    wide_operators: str = ""  # The operators of those tasks; empty: those of the shown ones.
    large: int = 320  # Tasks with large tensors from which B's are drawn.
    large_held_out: int = 64
    large_rl_steps: int = 30
    probed: int = 120  # Tasks that the first model answers, four times each.
    held_share: float = 0.2  # The share of structures that are held out.
    held_out: int = 24  # The most held-out tasks.
    held_samples: int = 4
    layers: int = 4
    width: int = 192
    heads: int = 6
    sft_steps: int = 1600
    batch_tokens: int = 4096
    sft_lr: float = 2e-3
    rl_steps: int = 10
    rl_prompts: int = 8
    rl_samples: int = 8
    rl_lr: float = 5e-5
    rft_steps: int = 60
    mended_samples: int = 16  # Answers to each of A's tasks that give C's repairs.
    mended_steps: int = 200
    tokens_max: int = 320
    # The sizes of H and P, which have a first model of their own.
    blocks_operators: str = "relu,neg,square,mul_scalar,add_scalar,sub,mul,sigmoid"
    blocks_tasks: int = 420
    blocks_depth: int = 3
    blocks_shown: int = 150
    blocks_sft_steps: int = 400
    blocks_rl_steps: int = 40
    blocks_rl_prompts: int = 8
    seed: int = 1


GPU = Size(
    shown=1600,
    shown_depth=4,
    bugs_share=0.5,
    faulty=5,
    wide=2900,
    wide_depth=4,
    wide_operators="relu,neg,square,mul_scalar,add_scalar,sub,mul,sigmoid,sum,mean",
    large=1000,
    probed=1000,
    held_share=0.16,
    held_out=320,
    held_samples=8,
    layers=8,
    width=256,
    heads=8,
    sft_steps=800,
    batch_tokens=16384,
    sft_lr=1.5e-3,
    rl_steps=60,
    rl_prompts=8,
    rl_samples=8,
    rl_lr=5e-5,
    rft_steps=60,
    mended_steps=600,
    tokens_max=512,
    blocks_tasks=4600,
    blocks_shown=1500,
    blocks_sft_steps=900,
    blocks_rl_steps=160,
    blocks_rl_prompts=16,
)


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to train: `rl` with these options, `rft`, or `sft` on the forge's right answers."""

    name: str
    options: Options = dataclasses.field(default_factory=dict)
    kind: str = "rl"


@dataclasses.dataclass(frozen=True)
class Experiment:
    arms: tuple[Arm, ...]
    common: Options = dataclasses.field(default_factory=dict)
    is_measured: bool = True  # False: only its training curves matter.
    measured_with: Options = dataclasses.field(default_factory=dict)
    first: str = "sft"  # The folder of the model that it begins with.
    tasks: str = "tasks.jsonl"
    held_out: str = "held_out.jsonl"


ROWS = {"sum", "mean"}  # The operators of B.
WORTH = (0.05, 0.95)  # Share of right answers to chains of a length that is trained and measured.
JUDGED: Options = {"backend": "cpu"}
COMMON: Options = {"updates": 2, "beta": 0.001, "weight-decay": 0, "warmup": 0.05,
                   "temperature": 1, "bdr": 0, "timing": "none", "kl-stop": 0.05,
                   **JUDGED}  # fmt: skip
STAND_IN = f"{sys.executable} {ROOT}/lab/ladder/stand_in_judge.py"
KNOWN: Options = {"judge": STAND_IN + " --contains 64>>>", "filter-zero-spread": 1}
HIDDEN: Options = {"judge": STAND_IN + " --hidden-blocks", "backend": None, "timing": None}
ALSO_JUDGED: Options = {
    "judge": STAND_IN + f" --hidden-blocks --then {BIN / 'musacoder'} eval --stream --no-timing"
    f" --backend cpu --seed 1 --jobs {max(2, (os.cpu_count() or 1) // 2)}",
    "backend": None,
    "timing": None,
}
REPLAYS = (("BDR", {"bdr": 0.3}), ("BDR, task alone", {"bdr": 0.3, "bdr-shows": "task"}),
           ("no BDR", {}))  # fmt: skip
REWARDS = (("best turn", {"alpha": 0, "b-early": 0}), ("first turn", {"alpha": 1, "b-early": 0}))
SHUFFLED: Options = {"reward-order": "shuffled"}
TIMED: Options = {"backend": "cuda", "timing": "quick"}
EXPERIMENTS: Mapping[str, Experiment] = {
    "A": Experiment(
        (
            Arm("rl"),
            Arm("rft", kind="rft"),
            Arm("one update", {"updates": 1}),
            Arm("shuffled", SHUFFLED),
        )
    ),
    "B": Experiment(
        (Arm("speed"), Arm("rft", kind="rft")),
        {**TIMED, "nu-max": 4, "prompts": 4},
        measured_with={**TIMED, "samples": 4},
        tasks="tasks-large.jsonl",
        held_out="held_out-large.jsonl",
    ),
    "C": Experiment(
        (
            Arm("all rules"),
            Arm("best turn", {"alpha": 0, "b-early": 0}),
            Arm("no BDR", {"bdr": 0}),
        ),
        {"turns": 3, "bdr": 0.25, "steps": 20},
        measured_with={"turns": 3, "samples": 4},
        first="mending",
        tasks="tasks-fresh.jsonl",  # The model was not tuned on answers to these.
    ),
    "D": Experiment(
        (
            Arm("none", {"delta": "off"}),
            Arm("signed mean", {"drift-mean": "signed"}),
            Arm("MirrorPop"),
        ),
        {**KNOWN, "stale": 8, "updates": 4},
        is_measured=False,
    ),
    "U": Experiment(
        tuple(Arm(f"updates {number}", {"updates": number}) for number in (1, 2, 4)),
        KNOWN,
        is_measured=False,
    ),
    "H": Experiment(
        tuple(Arm(name, options) for name, options in REPLAYS),
        {**HIDDEN, "turns": 2},
        measured_with={**HIDDEN, "turns": 3},
        first="blocks/sft",
        tasks="blocks/tasks.jsonl",
        held_out="blocks/held_out.jsonl",
    ),
    "P": Experiment(
        tuple(
            Arm(f"{reward}, {name}", {**rule, **options})
            for reward, rule in REWARDS
            for name, options in REPLAYS
        ),
        {**HIDDEN, "turns": 2},
        measured_with={**HIDDEN, "turns": 3},
        first="blocks/sft",
        tasks="blocks/tasks.jsonl",
        held_out="blocks/held_out.jsonl",
    ),
    "M": Experiment(
        tuple(Arm(name, options) for name, options in REPLAYS),
        {**ALSO_JUDGED, "turns": 2, "steps": 60},
        measured_with={**ALSO_JUDGED, "turns": 3, "samples": 4},
        first="blocks/sft",
        tasks="blocks/tasks.jsonl",
        held_out="blocks/held_out.jsonl",
    ),
    "R": Experiment(
        (
            Arm("rl"),
            Arm("shuffled", SHUFFLED),
            Arm("rft again", kind="rft"),
            Arm("right answers", kind="sft"),
        ),
        {"filter-zero-spread": 1, "steps": 20},
        measured_with={"samples": 4},
        first="after-rft/run",
        tasks="tasks-fresh.jsonl",
    ),
}
HIDDEN_ONES = {"H", "P", "M"}  # The experiments with hidden blocks.


class TimeIsUp(Exception):
    """The end of this call's time."""


class Ladder:
    """The stages and runs in one folder."""

    def __init__(self, folder: Path, size: Size, devices: list[str], minutes: float,
                 is_train_only: bool = False) -> None:  # fmt: skip
        self.folder = folder
        self.size = size
        self.devices: queue.SimpleQueue[str] = queue.SimpleQueue()
        for device in devices:
            self.devices.put(device)
        self.num_devices = len(devices)
        self.end = time.monotonic() + 60 * minutes
        self.is_train_only = is_train_only
        # Each run generates and updates for a part of its time.
        self.jobs = max(1, round(1.5 * (os.cpu_count() or 1) / len(devices)))

    def run(self, program: str, *arguments: object, options: Options = {}) -> None:
        """Runs one of our programs to its end."""
        command = [str(BIN / program), *map(str, arguments)]
        for name, value in options.items():
            command += [f"--{name}", str(value)] if value is not None else []
        self.run_command(command)

    def run_command(self, command: list[str]) -> None:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeIsUp
        # A session of its own, so that the verifier ends with it.
        process = subprocess.Popen(command, start_new_session=True)
        try:
            code = process.wait(left)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise TimeIsUp from None
        if code not in (0, UNANSWERED):
            raise RuntimeError(f"{' '.join(command[:2])} ended with {code}")

    @contextlib.contextmanager
    def free_device(self) -> Iterator[str]:
        """Waits for a free device and lends it."""
        device = self.devices.get()
        try:
            yield device
        finally:
            self.devices.put(device)

    # ---- The common beginning of all runs --------------------------------------------------------

    def stages(self, chosen: list[str]) -> list[Stage]:
        """The models and tasks with which the chosen experiments begin."""
        s, home = self.size, self.folder
        wide = {"operators": s.wide_operators or s.operators or None, "solutions": 1}
        blocks = {"families": "elementwise", "operators": s.blocks_operators, "solutions": 1}
        stages: list[Stage] = []
        if set(chosen) - HIDDEN_ONES or not chosen:
            stages += [
                self.forge("shown", s.shown, s.shown_depth, s.seed, {"bugs-share": s.bugs_share}),
                self.forge("wide", s.wide, s.wide_depth, s.seed + 1, wide),
                Stage("rows of shown tasks", home / "shown.jsonl", self.write_shown),
                *self.first_stages(home, s.sft_steps),
                Stage("tasks for training", home / "held_out.jsonl", self.choose_tasks),
            ]
        if HIDDEN_ONES & set(chosen):
            stages += [
                self.forge("blocks/forged", s.blocks_tasks, s.blocks_depth, s.seed + 2, blocks),
                Stage("rows with blocks", home / "blocks/shown.jsonl", self.write_blocks),
                *self.first_stages(home / "blocks", s.blocks_sft_steps),
            ]
        if "R" in chosen:
            stages += self.own_answers(home / "after-rft", "run", s.rl_samples, 0, s.rft_steps, 10)
        if "B" in chosen:
            large = {**wide, "size": "large"}
            stages += [
                self.forge("large", s.large, s.wide_depth, s.seed + 1, large),
                Stage("large tasks", home / "tasks-large.jsonl", self.choose_large),
            ]
        if "C" in chosen:
            # A model that mended little rewrites another line than the one that feedback names.
            stages += self.own_answers(home / "mending", "", s.mended_samples, 8, s.mended_steps, 3)
        return stages

    def forge(self, name: str, tasks: int, depth: int, seed: int,
              options: Options = {}) -> Stage:  # fmt: skip
        """Tasks with solutions; the same structures are held out for every seed."""
        out = self.folder / name
        all_options = {
            "tasks": tasks, "seed": seed, "style": "compact", "families": self.size.families,
            "operators": self.size.operators or None,
            "depth": depth, "test-share": self.size.held_share, "size": "small",
            "jobs": min(64, os.cpu_count() or 1), "out": out, **options}  # fmt: skip
        make = partial(self.run, "musacoder", "forge", options=all_options)
        return Stage(f"forge {name}", out / "forge.json", make)

    def first_stages(self, home: Path, steps: int) -> list[Stage]:
        """A model with random weights, and its tuning on the rows of shown tasks."""
        s = self.size
        shown, tokenizer, base = home / "shown.jsonl", home / "tokenizer.json", home / "base"
        shape = {"out": base, "layers": s.layers, "width": s.width, "heads": s.heads,
                 "seed": s.seed, "tokenizer": tokenizer}  # fmt: skip
        init = partial(self.run, "musacoder-learn", "init", options=shape)
        return [
            Stage("tokenizer", tokenizer, partial(make_tokenizer, shown, 2000, tokenizer)),
            Stage("init", base / "config.json", init),
            self.tuning(base, shown, home / "sft", steps, s.sft_lr),
        ]

    def own_answers(self, home: Path, run: str, samples: int, repairs: int, steps: int,
                    slower: float) -> list[Stage]:  # fmt: skip
        """The first model's answers to tasks, and its tuning on the right and mended ones."""
        sft, drawn = self.folder / "sft/model", home / "drawn"
        options = {"targets": 4, "repairs": repairs or None, **JUDGED}

        def draw() -> None:
            with self.free_device() as device:
                self.answer(sft, self.folder / "tasks.jsonl", drawn, samples, device,
                            os.cpu_count() or 1, options)  # fmt: skip

        return [
            Stage(f"answers of {home.name}", drawn / "episodes.jsonl", draw),
            self.tuning(sft, drawn / "sft.jsonl", home / run, steps, self.size.sft_lr / slower),
        ]

    def tuning(self, model: Path, data: Path, out: Path, steps: int, lr: float) -> Stage:
        def tune() -> None:
            with self.free_device() as device:
                self.tune(model, data, out, steps, lr, self.size.seed, device)

        return Stage(f"tune {out.name}", out / "model", tune)

    def write_shown(self) -> None:
        rows = lines_of(self.folder / "shown/sft.jsonl")
        text = "".join(rows + faulty_rows(rows) * self.size.faulty)
        write_atomically(self.folder / "shown.jsonl", text)

    def shown_chains(self) -> set[tuple[str, ...]]:
        lines = lines_of(self.folder / "shown/sft.jsonl")
        return {tuple(json.loads(line)["operators"]) for line in lines}

    def choose_large(self) -> None:
        """Large tensors of shown chains: the right answers differ in their speed alone."""
        shown, number = self.shown_chains(), self.size.large_held_out
        fit = [line for chain, line in self.chains("rl.jsonl", "large")
               if ROWS & set(chain) and chain in shown]  # fmt: skip
        write_atomically(self.folder / "held_out-large.jsonl", "".join(fit[:number]))
        write_atomically(self.folder / "tasks-large.jsonl", "".join(fit[number:]))

    def choose_tasks(self) -> None:
        """Chains that no solution was shown for, of the lengths that are worth it.

        Only those that the probe's tries answered both right and wrong are trained on: a group
        without spread moves nothing.
        """
        s = self.size
        shown = self.shown_chains()
        train = [one for one in self.chains("rl.jsonl") if one[0] not in shown]
        held = self.chains("test.jsonl")
        probe = self.folder / "probe.jsonl"
        write_atomically(probe, "".join(line for _, line in train[: s.probed]))
        with self.free_device() as device:
            self.answer(self.folder / "sft/model", probe, self.folder / "probe", 4, device,
                        os.cpu_count() or 1, JUDGED)  # fmt: skip
        rates = rates_by_length(self.folder / "probe/episodes.jsonl", dict_of(train))
        say("right answers by length: " + ", ".join(f"{k}: {v:.2f}" for k, v in rates.items()))
        lengths = [k for k, v in rates.items() if WORTH[0] <= v <= WORTH[1]]
        fit = [line for chain, line in train[: s.probed] if len(chain) in lengths]
        mixed = answered_both_ways(self.folder / "probe/episodes.jsonl")
        kept = [line for line in fit if json.loads(line)["id"] in mixed]
        say(f"{len(kept)} tasks to train on, of {len(fit)}")
        if len(kept) < s.rl_prompts:
            raise RuntimeError(f"a step needs {s.rl_prompts} tasks: give more --probed tasks")
        write_atomically(self.folder / "tasks.jsonl", "".join(kept))
        fresh = [line for chain, line in train[s.probed :] if len(chain) in lengths]
        write_atomically(self.folder / "tasks-fresh.jsonl", "".join(fresh))

        chosen = [line for chain, line in held if len(chain) in lengths][: s.held_out]
        if len(chosen) < 2:
            raise RuntimeError(
                f"{len(chosen)} held-out tasks have a length that is answered right by some"
                " and not by most tries: give more --wide tasks, or another number of --sft-steps"
            )
        write_atomically(self.folder / "held_out.jsonl", "".join(chosen))

    def write_blocks(self) -> None:
        """The rows and tasks of H and P; no solution is shown for the tasks."""
        s, home = self.size, self.folder / "blocks"
        lines = lines_of(home / "forged/rl.jsonl")
        codes = {row["id"]: row["label"] for row in map(json.loads, lines[: s.blocks_shown])}
        rows = list(map(json.loads, lines_of(home / "forged/sft.jsonl")))
        held = lines_of(home / "forged/test.jsonl")[: s.held_out]
        write_atomically(home / "tasks.jsonl", "".join(lines[s.blocks_shown :]))
        write_atomically(home / "held_out.jsonl", "".join(held))
        write_atomically(home / "shown.jsonl", "".join(shown_rows(rows, codes, s.seed)))

    def first_model(self, name: str) -> Path:
        return self.folder / EXPERIMENTS[name].first / "model"

    def chains(self, name: str, folder: str = "wide") -> list[tuple[tuple[str, ...], str]]:
        lines = lines_of(self.folder / folder / name)
        return [(tuple(json.loads(line)["extra_info"]["operators"]), line) for line in lines]

    def tune(self, model: Path, data: Path, out: Path, steps: int, lr: float, seed: int,
             device: str) -> None:  # fmt: skip
        if not (out / "model").exists():
            self.run("musacoder-learn", "sft", "--resume", options={
                "model": model, "data": data, "out": out, "steps": steps,
                "batch-tokens": self.size.batch_tokens, "lr": lr, "device": device,
                "seed": seed})  # fmt: skip

    def answer(self, model: Path, tasks: Path, out: Path, samples: int, device: str, jobs: int,
               options: Options = {}) -> None:  # fmt: skip
        """out/episodes.jsonl: answers with verdicts."""
        s = self.size
        if not (out / "episodes.jsonl").exists():
            self.run("musacoder-learn", "rft", options={
                "model": model, "data": tasks, "out": out, "samples": samples, "targets": 1,
                "max-tokens": s.tokens_max, "device": device, "jobs": jobs, "seed": s.seed,
                "backend": "cpu", **options})  # fmt: skip

    # ---- One run ---------------------------------------------------------------------------------

    def one(self, name: str, arm: Arm, number: int) -> None:
        home, experiment = self.home(name, arm, number), EXPERIMENTS[name]
        with self.free_device() as device:
            self.draw(name, arm, number, home, device)
            if experiment.is_measured and not self.is_train_only:
                self.measure(experiment, home / "model", home / "held_out", device)
        say(f"{name}, {arm.name}, seed {number}: done")

    def home(self, experiment: str, arm: Arm, number: int) -> Path:
        return self.folder / experiment / arm.name.replace(" ", "-") / str(number)

    def draw(self, name: str, arm: Arm, number: int, home: Path, device: str) -> None:
        s = self.size
        if (home / "model").exists():
            return
        sft, tasks = self.first_model(name), self.folder / EXPERIMENTS[name].tasks
        seed = 1000 * number
        if arm.kind == "rl":
            is_hidden = name in HIDDEN_ONES
            own = {"model": sft, "data": tasks, "out": home, "seed": seed,
                   "steps": self.steps_of(name),
                   "prompts": s.blocks_rl_prompts if is_hidden else s.rl_prompts,
                   "samples": s.rl_samples, "lr": s.rl_lr,
                   "max-tokens": s.tokens_max, "device": device,
                   "jobs": self.jobs}  # fmt: skip
            options = {**own, **COMMON, **EXPERIMENTS[name].common, **arm.options}
            self.run("musacoder-learn", "rl", "--resume", options=options)
            return
        drawn, data = home / "drawn", home / "data.jsonl"
        # RL has as many answers, though it meets a task several times.
        prompts = self.steps_of(name) * int(
            str(EXPERIMENTS[name].common.get("prompts", s.rl_prompts)))  # fmt: skip
        count = min(len(lines_of(tasks)), prompts)
        if not data.exists() and arm.kind == "sft":
            home.mkdir(parents=True, exist_ok=True)
            write_atomically(data, self.right_answers(tasks, count))
        if not data.exists():
            samples = round(prompts * s.rl_samples / count)
            options = {"limit": count, "targets": 4, **JUDGED, "seed": seed}
            self.answer(sft, tasks, drawn, samples, device, self.jobs, options)
            write_atomically(data, (drawn / "sft.jsonl").read_text())
        self.tune(sft, data, home / "run", s.rft_steps, s.sft_lr / 10, seed, device)
        (home / "model").symlink_to("run/model")

    def steps_of(self, name: str) -> int:
        s = self.size
        own = {"B": s.large_rl_steps, **dict.fromkeys(HIDDEN_ONES, s.blocks_rl_steps)}
        return int(str(EXPERIMENTS[name].common.get("steps", own.get(name, s.rl_steps))))

    def right_answers(self, tasks: Path, count: int) -> str:
        """The forge's solutions to the first tasks, as rows to fine-tune on."""
        ids = {json.loads(line)["id"] for line in lines_of(tasks)[:count]}
        rows = lines_of(self.folder / "wide/sft.jsonl")
        return "".join(row for row in rows if json.loads(row)["task"] in ids)

    def measure(self, experiment: Experiment, model: Path, out: Path, device: str) -> None:
        options = {**JUDGED, **experiment.measured_with}
        self.answer(model, self.folder / experiment.held_out, out, self.size.held_samples, device,
                    self.jobs, options)  # fmt: skip

    def measure_base(self, name: str) -> None:
        with self.free_device() as device:
            self.measure(EXPERIMENTS[name], self.first_model(name), self.base_of(name), device)

    def base_of(self, name: str) -> Path:
        """The first model's answers to the held-out tasks, in the way of this experiment."""
        other = EXPERIMENTS[name].measured_with
        return self.first_model(name).parent / (f"held_out-{name}" if other else "held_out")

    def compare_turns(self) -> None:
        """C/arms/report.md: feedback against a fresh draw, before training."""
        out = self.folder / "C/arms"
        if (out / "report.md").exists():
            return
        with self.free_device() as device:
            where = f"--device {device}" + (" --batch 256" if device != "cpu" else "")
            command = [sys.executable, ROOT / "lab/ladder/turn_arms.py", "--tasks",
                       self.folder / "held_out.jsonl", "--model", self.first_model("C"), "--out",
                       out, "--max-tokens", self.size.tokens_max, "--jobs", self.jobs,
                       "--generate", where, "--eval", "--backend cpu"]  # fmt: skip
            self.run_command([str(word) for word in command])

    # ---- All of it -------------------------------------------------------------------------------

    def run_all(self, chosen: list[str], seeds: int, arms: list[str]) -> bool:
        """True if all runs came to their end in this call's time."""
        run_stages(self.stages(chosen))
        is_whole = True
        with ThreadPoolExecutor(self.num_devices) as pool_of_devices:
            jobs = []
            for name in chosen:
                if EXPERIMENTS[name].is_measured and not self.is_train_only:
                    jobs.append(pool_of_devices.submit(self.measure_base, name))
                if name == "C":
                    jobs.append(pool_of_devices.submit(self.compare_turns))
                jobs += [pool_of_devices.submit(self.one, name, arm, number)
                         for number in range(1, seeds + 1)
                         for arm in EXPERIMENTS[name].arms
                         if not arms or arm.name in arms]  # fmt: skip
            for job in jobs:
                try:
                    job.result()
                except RuntimeError as error:  # One run's failure ends no other.
                    say(str(error))
                except TimeIsUp:
                    is_whole = False
        self.report(chosen, seeds)
        return is_whole

    def report(self, chosen: list[str], seeds: int) -> None:
        lines = []
        for name in chosen:
            experiment, base = EXPERIMENTS[name], self.base_of(name)
            is_known = experiment.is_measured and (base / "episodes.jsonl").exists()
            before = held_of(base) if is_known else {}
            lines.append(f"\n## {name}\n\n")
            if before:
                lines.append(f"Before: {line_of(before)}\n\n")
            arms = self.folder / name / "arms/report.md"
            if arms.exists():
                lines.append(arms.read_text() + "\n")
            lines.append(titles_of(name))
            first: tuple[list[Held], list[Path]] | None = None
            for arm in experiment.arms:
                homes = [self.home(name, arm, number) for number in range(1, seeds + 1)]
                last = "held_out/episodes.jsonl" if experiment.is_measured else "model"
                done = [home for home in homes if (home / last).exists()]
                if done and (before or not experiment.is_measured):
                    held = [held_of(home / "held_out") for home in done if before]
                    first = first or (held, done)
                    lines.append(row_of(name, arm.name, Row(before, held, done, *first)))
            if find_spec("matplotlib"):
                self.plot_curves(name, seeds)
        write_atomically(self.folder / "report.md", "".join(lines).lstrip())
        print("".join(lines))

    def plot_curves(self, experiment: str, seeds: int) -> None:
        """curves-EXPERIMENT.png: accuracy of first answers in training, and all runs' range."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        plot, axes = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
        for arm in EXPERIMENTS[experiment].arms:
            homes = [self.home(experiment, arm, number) for number in range(1, seeds + 1)]
            steps = training_curve_of(homes)
            if not steps:  # RFT has no curve.
                continue
            places = range(1, len(steps) + 1)
            means = [100 * sum(some) / len(some) for some in steps]
            (line,) = axes.plot(places, means, linewidth=1.2, label=arm.name)
            low, high = ([100 * end(some) for some in steps] for end in (min, max))
            axes.fill_between(places, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set(xlabel="step", ylabel="first answers that pass, %", ylim=(0, 100))
        axes.legend()
        part = self.folder / "curves.part.png"
        plot.savefig(part, dpi=130)
        part.replace(self.folder / f"curves-{experiment}.png")
        pyplot.close(plot)


def dict_of(chains: list[tuple[tuple[str, ...], str]]) -> dict[str, int]:
    """The length of each task's chain."""
    return {json.loads(line)["id"]: len(chain) for chain, line in chains}


def faulty_rows(lines: list[str]) -> list[str]:
    """The failed answers of repairs, each as the answer to its task."""
    made = []
    for row in map(json.loads, lines):
        if row["kind"] == "repair":
            task, *turns = row["messages"]
            failed = [turn for turn in turns[:-1] if turn["role"] == "assistant"]
            made += [{**row, "kind": "faulty", "messages": [task, turn]} for turn in failed]
    return [json.dumps(row) + "\n" for row in made]


def answered_both_ways(episodes: Path) -> set[str]:
    """The tasks that were answered right by some tries and wrong by others."""
    seen: dict[str, set[bool]] = {}
    for episode in map(json.loads, lines_of(episodes)):
        seen.setdefault(episode["task"], set()).add(episode["turns"][0]["outcome"] == "pass")
    return {task for task, kinds in seen.items() if len(kinds) == 2}


def rates_by_length(episodes: Path, lengths: Mapping[str, int]) -> dict[int, float]:
    """The share of answers that passed, by the length of the task's chain."""
    passed: dict[int, list[bool]] = {}
    for episode in map(json.loads, lines_of(episodes)):
        is_right = episode["turns"][0]["outcome"] == "pass"
        passed.setdefault(lengths[episode["task"]], []).append(is_right)
    return {length: sum(some) / len(some) for length, some in sorted(passed.items())}


SizeT = TypeVar("SizeT", bound=Size)


def read_arguments(
    parser: argparse.ArgumentParser, small: SizeT, large: SizeT, name: str
) -> tuple[argparse.Namespace, SizeT]:
    """Reads the call's options and their size, and claims the folder."""
    parser.add_argument("--out", type=Path, help=f"folder of all runs (build/{name}, -gpu)")
    parser.add_argument("--gpu", action="store_true", help="the size for GPUs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--devices", default="", help="cpu, or cuda:0,cuda:1,…")
    parser.add_argument("--minutes", type=float, default=1e6, help="of this call")
    add_settings(parser, type(small))
    arguments = parser.parse_args()
    size: SizeT = changed_settings(large if arguments.gpu else small, arguments)
    place = ROOT / "build" / (name + "-gpu" if arguments.gpu else name)
    arguments.out = (arguments.out or place).resolve()
    arguments.devices = (arguments.devices or ("cuda:0" if arguments.gpu else "cpu")).split(",")
    claim(arguments.out, "size.json", size)
    return arguments, size


def end_of(run_all: Callable[[], bool]) -> int:
    """The exit code of a call."""
    try:
        return 0 if run_all() else CUT_SHORT
    except TimeIsUp:
        return CUT_SHORT
    except RuntimeError as error:
        fail(str(error))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./run.sh ladder", description="The experiments of the ladder."
    )
    parser.add_argument("--only", default="A", help="experiments: A,B,C,D,U,H,P,M,R; or base")
    parser.add_argument("--arms", default="", help="only these arms of them: rl,shuffled")
    parser.add_argument("--train-only", action="store_true", help="without held-out tasks")
    arguments, size = read_arguments(parser, Size(), GPU, "ladder")
    chosen = [name for name in arguments.only.split(",") if name and name != "base"]
    for name in chosen:
        if name not in EXPERIMENTS:
            fail(f"no experiment {name}: they are {', '.join(EXPERIMENTS)}")
    arms = [arm for arm in arguments.arms.split(",") if arm]
    known = [arm.name for name in chosen for arm in EXPERIMENTS[name].arms]
    for arm in arms:
        if arm not in known:
            fail(f"no arm {arm} in {arguments.only}: they are {', '.join(known)}")
    ladder = Ladder(arguments.out, size, arguments.devices, arguments.minutes,
                    arguments.train_only)  # fmt: skip
    return end_of(lambda: ladder.run_all(chosen, arguments.seeds, arms))


if __name__ == "__main__":
    sys.exit(main())
