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
the courses of training in DIR/courses-A.png and so on. A device may be named several times: as many
runs share it. MooreEval judges all answers, where times do not count on the ptx device.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from ladder_blocks import shown_rows
from ladder_report import Held, Row, course_of, held_of, line_of, row_of, titles_of
from learn import BIN, ROOT, UNANSWERED, fail, say, write_atomically

CUT_SHORT = 3
Options = Mapping[str, object]


@dataclasses.dataclass(frozen=True)
class Size:
    """All that the tables depend on."""

    families: str = "elementwise,reduction"
    operators: str = ""  # All of these families.
    shown: int = 1200  # Tasks whose solutions are shown.
    shown_depth: int = 4
    bugs_share: float = 0.4  # Share of shown tasks with repairs of failed answers.
    faulty: int = 0  # Times that each of these failed answers is shown as if it were right.
    wide: int = 400  # Tasks to draw those of RL and the held-out ones from.
    wide_depth: int = 4
    wide_operators: str = ""  # Those tasks' own; empty: the same as of the shown ones.
    large: int = 320  # Tasks with large tensors to draw B's from.
    large_held_out: int = 64
    large_rl_steps: int = 30
    probed: int = 120  # Tasks that the first model answers, four times each.
    held_share: float = 0.2  # Share of structures.
    held_out: int = 24  # At most.
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
    is_measured: bool = True  # With held-out tasks; otherwise its courses are all that it is for.
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
        tasks="tasks-fresh.jsonl",  # Others than those whose right answers that model was tuned on.
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
        self.is_cut_short = False
        self.is_train_only = is_train_only
        # Each run generates and updates for a part of its time.
        self.jobs = max(1, round(1.5 * (os.cpu_count() or 1) / len(devices)))

    def run(self, program: str, *arguments: object, options: Options = {}) -> bool:
        """Runs one of our programs to its end; False where this call's time ended before."""
        command = [str(BIN / program), *map(str, arguments)]
        for name, value in options.items():
            command += [f"--{name}", str(value)] if value is not None else []
        return self.run_command(command)

    def run_command(self, command: list[str]) -> bool:
        left = self.end - time.monotonic()
        if left <= 0 or self.is_cut_short:
            self.is_cut_short = True
            return False
        # A session of its own, so that the verifier ends with it.
        process = subprocess.Popen(command, start_new_session=True)
        try:
            code = process.wait(left)
        except subprocess.TimeoutExpired:
            self.is_cut_short = True
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
        if code not in (0, UNANSWERED):
            raise RuntimeError(f"{' '.join(command[:2])} ended with {code}")
        return True

    # ---- What all runs begin with ----------------------------------------------------------------

    def make_base(self) -> bool:
        s = self.size
        base, sft = self.folder / "base", self.folder / "sft"
        if not self.forge("shown", s.shown, s.shown_depth, s.seed, {"bugs-share": s.bugs_share}):
            return False
        of_wide = {**self.of_wide, "solutions": 1}
        if not self.forge("wide", s.wide, s.wide_depth, s.seed + 1, of_wide):
            return False
        shown = self.folder / "shown.jsonl"
        if not shown.exists():
            rows = (self.folder / "shown/sft.jsonl").read_text().splitlines(keepends=True)
            write_atomically(shown, "".join(rows + faulty_rows(rows) * s.faulty))
        if not (base / "config.json").exists() and not self.init(base, shown):
            return False
        if not self.tune(base, shown, sft, s.sft_steps, s.sft_lr, s.seed):
            return False
        return (self.folder / "held_out.jsonl").exists() or self.choose_tasks()

    @property
    def of_wide(self) -> Options:
        return {"operators": self.size.wide_operators or self.size.operators or None}

    def make_large(self) -> bool:
        """Tasks with large tensors: how the work of a row is divided decides their time."""
        s = self.size
        if not self.forge("large", s.large, s.wide_depth, s.seed + 1,
                          {**self.of_wide, "size": "large", "solutions": 1}):  # fmt: skip
            return False
        # Chains that solutions were shown for: what differs is how fast the right answers are.
        lines = (self.folder / "shown/sft.jsonl").read_text().splitlines()
        shown = {tuple(json.loads(line)["operators"]) for line in lines}
        pool = [line for chain, line in self.chains("rl.jsonl", "large")
                if ROWS & set(chain) and chain in shown]  # fmt: skip
        write_atomically(self.folder / "held_out-large.jsonl", "".join(pool[: s.large_held_out]))
        write_atomically(self.folder / "tasks-large.jsonl", "".join(pool[s.large_held_out :]))
        return True

    def make_rft_model(self) -> bool:
        """after-rft/run/model: the first model, tuned on right answers of its own."""
        s = self.size
        sft, home = self.folder / "sft/model", self.folder / "after-rft"
        device = self.devices.get()
        try:
            options = {"targets": 4, **JUDGED}
            drawn = self.answer(sft, self.folder / "tasks.jsonl", home / "drawn", s.rl_samples,
                                device, os.cpu_count() or 1, options)  # fmt: skip
            return drawn and self.tune(sft, home / "drawn/sft.jsonl", home / "run", s.rft_steps,
                                       s.sft_lr / 10, s.seed, device)  # fmt: skip
        finally:
            self.devices.put(device)

    def init(self, base: Path, text: Path) -> bool:
        s = self.size
        tokenizer = base.with_name("tokenizer.json")
        script = ROOT / "tools/make_tokenizer.py"
        command = [sys.executable, script, "--text", text, "--vocab", 2000, "--split", "lines"]
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
        done = subprocess.run(
            [*map(str, command), "--out", str(tokenizer)], env=environment, check=False
        )
        if done.returncode != 0:
            fail("the tokenizer could not be made")
        return self.run("musacoder-learn", "init", options={
            "out": base, "layers": s.layers, "width": s.width, "heads": s.heads,
            "seed": s.seed, "tokenizer": tokenizer})  # fmt: skip

    def forge(self, name: str, tasks: int, depth: int, seed: int,
              options: Options = {}) -> bool:  # fmt: skip
        """Both sets have the same structures held out."""
        if (self.folder / name / "forge.json").exists():
            return True
        return self.run("musacoder", "forge", options={
            "tasks": tasks, "seed": seed, "style": "compact", "families": self.size.families,
            "operators": self.size.operators or None,
            "depth": depth, "test-share": self.size.held_share, "size": "small",
            "jobs": min(64, os.cpu_count() or 1), "out": self.folder / name,
            **options})  # fmt: skip

    def choose_tasks(self) -> bool:
        """Chains that no solution was shown for, of the lengths that are worth it.

        Only those that the probe's tries answered both right and wrong are trained on: a group
        without spread moves nothing.
        """
        s = self.size
        lines = (self.folder / "shown/sft.jsonl").read_text().splitlines()
        shown = {tuple(json.loads(line)["operators"]) for line in lines}
        train = [one for one in self.chains("rl.jsonl") if one[0] not in shown]
        held = self.chains("test.jsonl")
        probe = self.folder / "probe.jsonl"
        write_atomically(probe, "".join(line for _, line in train[: s.probed]))
        device = self.devices.get()
        drawn = self.answer(self.folder / "sft/model", probe, self.folder / "probe", 4, device,
                            os.cpu_count() or 1, JUDGED)  # fmt: skip
        self.devices.put(device)
        if not drawn:
            return False
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
        write_atomically(self.folder / "held_out.jsonl", "".join(chosen))
        if len(chosen) < 2:
            raise RuntimeError(
                f"{len(chosen)} held-out tasks have a length that is answered right by some"
                " and not by most tries: give more --wide tasks, or another number of --sft-steps"
            )
        return True

    def make_mending_model(self) -> bool:
        """mending/model: the first one, tuned on right answers of its own and mended wrong ones.

        A model that mended little rewrites another line than the one that feedback names.
        """
        s = self.size
        sft, home = self.folder / "sft/model", self.folder / "mending"
        device = self.devices.get()
        try:
            options = {"targets": 4, "repairs": 8, **JUDGED}
            drawn = self.answer(sft, self.folder / "tasks.jsonl", home / "drawn", s.mended_samples,
                                device, os.cpu_count() or 1, options)  # fmt: skip
            return drawn and self.tune(sft, home / "drawn/sft.jsonl", home, s.mended_steps,
                                       s.sft_lr / 3, s.seed, device)  # fmt: skip
        finally:
            self.devices.put(device)

    def make_blocks_model(self) -> bool:
        """The first model of H and P, and their tasks: chains that no solution was shown for."""
        s = self.size
        home = self.folder / "blocks"
        options = {"families": "elementwise", "operators": s.blocks_operators, "solutions": 1}
        if not self.forge("blocks/forged", s.blocks_tasks, s.blocks_depth, s.seed + 2, options):
            return False
        shown, base = home / "shown.jsonl", home / "base"
        if not shown.exists():
            lines = (home / "forged/rl.jsonl").read_text().splitlines(keepends=True)
            codes = {row["id"]: row["label"] for row in map(json.loads, lines[: s.blocks_shown])}
            rows = map(json.loads, (home / "forged/sft.jsonl").read_text().splitlines())
            held = (home / "forged/test.jsonl").read_text().splitlines(keepends=True)
            write_atomically(home / "tasks.jsonl", "".join(lines[s.blocks_shown :]))
            write_atomically(home / "held_out.jsonl", "".join(held[: s.held_out]))
            write_atomically(shown, "".join(shown_rows(list(rows), codes, s.seed)))
        if not (base / "config.json").exists() and not self.init(base, shown):
            return False
        return self.tune(base, shown, home / "sft", s.blocks_sft_steps, s.sft_lr, s.seed)

    def first_model(self, name: str) -> Path:
        return self.folder / EXPERIMENTS[name].first / "model"

    def chains(self, name: str, folder: str = "wide") -> list[tuple[tuple[str, ...], str]]:
        lines = (self.folder / folder / name).read_text().splitlines(keepends=True)
        return [(tuple(json.loads(line)["extra_info"]["operators"]), line) for line in lines]

    def tune(self, model: Path, data: Path, out: Path, steps: int, lr: float, seed: int,
             device: str = "") -> bool:  # fmt: skip
        s = self.size
        held = device or self.devices.get()
        try:
            return (out / "model").exists() or self.run("musacoder-learn", "sft", "--resume",
                options={"model": model, "data": data, "out": out, "steps": steps,
                         "batch-tokens": s.batch_tokens, "lr": lr, "device": held,
                         "seed": seed})  # fmt: skip
        finally:
            if not device:
                self.devices.put(held)

    def answer(self, model: Path, tasks: Path, out: Path, samples: int, device: str, jobs: int,
               options: Options = {}) -> bool:  # fmt: skip
        """out/episodes.jsonl: answers with verdicts."""
        s = self.size
        return (out / "episodes.jsonl").exists() or self.run("musacoder-learn", "rft", options={
            "model": model, "data": tasks, "out": out, "samples": samples, "targets": 1,
            "max-tokens": s.tokens_max, "device": device, "jobs": jobs, "seed": s.seed,
            "backend": "cpu", **options})  # fmt: skip

    # ---- One run ---------------------------------------------------------------------------------

    def one(self, name: str, arm: Arm, number: int) -> None:
        device = self.devices.get()
        try:
            home, experiment = self.home(name, arm, number), EXPERIMENTS[name]
            done = self.draw(name, arm, number, home, device)
            if done and experiment.is_measured and not self.is_train_only:
                done = self.measure(experiment, home / "model", home / "held_out", device,
                                    self.jobs)  # fmt: skip
            if done:
                say(f"{name}, {arm.name}, seed {number}: done")
        finally:
            self.devices.put(device)

    def home(self, experiment: str, arm: Arm, number: int) -> Path:
        return self.folder / experiment / arm.name.replace(" ", "-") / str(number)

    def draw(self, name: str, arm: Arm, number: int, home: Path, device: str) -> bool:
        s = self.size
        if (home / "model").exists():
            return True
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
            return self.run("musacoder-learn", "rl", "--resume", options=options)
        drawn, data = home / "drawn", home / "data.jsonl"
        # RL has as many answers, though it meets a task several times.
        prompts = self.steps_of(name) * int(
            str(EXPERIMENTS[name].common.get("prompts", s.rl_prompts)))  # fmt: skip
        count = min(len(tasks.read_text().splitlines()), prompts)
        if not data.exists() and arm.kind == "sft":
            home.mkdir(parents=True, exist_ok=True)
            write_atomically(data, self.right_answers(tasks, count))
        if not data.exists():
            samples = round(prompts * s.rl_samples / count)
            options = {"limit": count, "targets": 4, **JUDGED, "seed": seed}
            if not self.answer(sft, tasks, drawn, samples, device, self.jobs, options):
                return False
            write_atomically(data, (drawn / "sft.jsonl").read_text())
        if not self.tune(sft, data, home / "run", s.rft_steps, s.sft_lr / 10, seed, device):
            return False
        (home / "model").symlink_to("run/model")
        return True

    def steps_of(self, name: str) -> int:
        s = self.size
        own = {"B": s.large_rl_steps, **dict.fromkeys(HIDDEN_ONES, s.blocks_rl_steps)}
        return int(str(EXPERIMENTS[name].common.get("steps", own.get(name, s.rl_steps))))

    def right_answers(self, tasks: Path, count: int) -> str:
        """The forge's solutions to the first tasks, as rows to fine-tune on."""
        ids = {json.loads(line)["id"] for line in tasks.read_text().splitlines()[:count]}
        rows = (self.folder / "wide/sft.jsonl").read_text().splitlines(keepends=True)
        return "".join(row for row in rows if json.loads(row)["task"] in ids)

    def measure(self, experiment: Experiment, model: Path, out: Path, device: str,
                jobs: int) -> bool:  # fmt: skip
        s = self.size
        options = {**JUDGED, **experiment.measured_with}
        return self.answer(model, self.folder / experiment.held_out, out, s.held_samples, device,
                           jobs, options)  # fmt: skip

    def measure_base(self, name: str) -> None:
        device = self.devices.get()
        try:
            self.measure(EXPERIMENTS[name], self.first_model(name), self.base_of(name), device,
                         self.jobs)  # fmt: skip
        finally:
            self.devices.put(device)

    def base_of(self, name: str) -> Path:
        """The first model's answers to the held-out tasks, in the way of this experiment."""
        other = EXPERIMENTS[name].measured_with
        return self.first_model(name).parent / (f"held_out-{name}" if other else "held_out")

    def compare_turns(self) -> None:
        """C/arms/report.md: feedback against a fresh draw, before training."""
        out = self.folder / "C/arms"
        if (out / "report.md").exists():
            return
        device = self.devices.get()
        where = f"--device {device}" + (" --batch 256" if device != "cpu" else "")
        command = [sys.executable, ROOT / "lab/ladder/turn_arms.py", "--tasks",
                   self.folder / "held_out.jsonl", "--model", self.first_model("C"), "--out",
                   out, "--max-tokens", self.size.tokens_max, "--jobs", self.jobs,
                   "--generate", where, "--eval",
                   "--backend cpu"]  # fmt: skip
        try:
            self.run_command([str(word) for word in command])
        finally:
            self.devices.put(device)

    # ---- All of it -------------------------------------------------------------------------------

    def run_all(self, chosen: list[str], seeds: int, arms: list[str]) -> None:
        if set(chosen) - HIDDEN_ONES or not chosen:
            if not self.make_base():
                return
        if HIDDEN_ONES & set(chosen) and not self.make_blocks_model():
            return
        if "R" in chosen and not self.make_rft_model():
            return
        if "B" in chosen and not self.make_large():
            return
        if "C" in chosen and not self.make_mending_model():
            return
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
        self.report(chosen, seeds)

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
                self.plot_courses(name, seeds)
        write_atomically(self.folder / "report.md", "".join(lines).lstrip())
        print("".join(lines))

    def plot_courses(self, experiment: str, seeds: int) -> None:
        """courses-EXPERIMENT.png: accuracy of first answers in training, and all runs' range."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        plot, axes = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
        for arm in EXPERIMENTS[experiment].arms:
            homes = [self.home(experiment, arm, number) for number in range(1, seeds + 1)]
            steps = course_of(homes)
            if not steps:  # RFT has none.
                continue
            places = range(1, len(steps) + 1)
            means = [100 * sum(some) / len(some) for some in steps]
            (line,) = axes.plot(places, means, linewidth=1.2, label=arm.name)
            low, high = ([100 * end(some) for some in steps] for end in (min, max))
            axes.fill_between(places, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set(xlabel="step", ylabel="first answers that pass, %", ylim=(0, 100))
        axes.legend()
        part = self.folder / "courses.part.png"
        plot.savefig(part, dpi=130)
        part.replace(self.folder / f"courses-{experiment}.png")
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
    for line in episodes.read_text().splitlines():
        episode = json.loads(line)
        seen.setdefault(episode["task"], set()).add(episode["turns"][0]["outcome"] == "pass")
    return {task for task, kinds in seen.items() if len(kinds) == 2}


def rates_by_length(episodes: Path, lengths: Mapping[str, int]) -> dict[int, float]:
    """The share of answers that passed."""
    passed: dict[int, list[bool]] = {}
    for line in episodes.read_text().splitlines():
        episode = json.loads(line)
        is_right = episode["turns"][0]["outcome"] == "pass"
        passed.setdefault(lengths[episode["task"]], []).append(is_right)
    return {length: sum(some) / len(some) for length, some in sorted(passed.items())}


SizeT = TypeVar("SizeT", bound=Size)


def read_arguments(
    parser: argparse.ArgumentParser, small: SizeT, large: SizeT, name: str
) -> tuple[argparse.Namespace, SizeT]:
    """The call's options, and the size that they name; the folder is claimed for it."""
    parser.add_argument("--out", type=Path, help=f"folder of all runs (build/{name}, -gpu)")
    parser.add_argument("--gpu", action="store_true", help="the size for GPUs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--devices", default="", help="cpu, or cuda:0,cuda:1,…")
    parser.add_argument("--minutes", type=float, default=1e6, help="of this call")
    fields = dataclasses.fields(small)
    for field in fields:
        kind = {"int": int, "float": float, "str": str}[str(field.type)]
        parser.add_argument("--" + field.name.replace("_", "-"), type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    changes = {field.name: getattr(arguments, field.name) for field in fields
               if getattr(arguments, field.name) is not None}  # fmt: skip
    size = dataclasses.replace(large if arguments.gpu else small, **changes)
    place = ROOT / "build" / (name + "-gpu" if arguments.gpu else name)
    arguments.out = (arguments.out or place).resolve()
    arguments.devices = (arguments.devices or ("cuda:0" if arguments.gpu else "cpu")).split(",")
    text = json.dumps(dataclasses.asdict(size), indent=2) + "\n"
    path = arguments.out / "size.json"
    if path.exists() and path.read_text() != text:
        fail(f"{arguments.out} holds runs of another size: give another --out, or remove it")
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except OSError as error:
        fail(f"--out {arguments.out}: {error.strerror}")
    return arguments, size


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./run.sh ladder", description="The experiments of the ladder."
    )
    parser.add_argument("--only", default="A", help="experiments: A,B,C,D,U,H,P,M,R; or base")
    parser.add_argument("--arms", default="", help="only these arms of them: rl,by lot")
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
    try:
        ladder.run_all(chosen, arguments.seeds, arms)
    except RuntimeError as error:
        fail(str(error))
    return CUT_SHORT if ladder.is_cut_short else 0


if __name__ == "__main__":
    sys.exit(main())
