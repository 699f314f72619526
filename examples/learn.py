#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From tasks to a model that writes kernels, on this machine: `./run.sh learn [--quick | --gpu]`.

With `--model FOLDER` or `--model FILE.gguf` the ladder begins with a pretrained model.

Stages, each a program of its own that reads and writes files in one folder:

    forge      tasks, verified solutions, repairs of failed answers data/, sft.jsonl,
               and tasks of structures that no solution is shown for new_tasks.jsonl
    tokenizer  byte-level BPE of the forge's own text               tokenizer.json
    init       a small model with random weights                    base/
    sft        supervised fine-tuning on the solutions              sft/
    rft        fine-tuning on the model's own answers that passed   rft/
    rl         reinforcement learning, one turn an episode          rl/
    rl-multi   the same with up to three turns                      rl-multi/
    bench      held-out tasks for each of these, by MooreEval       bench/base, bench/sft, …
    sampled    several answers a task at temperature 1 (--samples)  sampled/sft, …
    kernelbench  level 1 of a copy of it (--kernelbench FOLDER)     kernelbench/base, …
    report     a table and a plot                                   report.md, report.png

With --seeds N the rungs after sft are done N times, under seeds of their own, in seed-2/, …

A stage whose output exists is skipped; an interrupted stage continues where it stopped. So the
script can be killed and restarted at any time, and ends with the same table.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("MC_BIN", ROOT / "build/dev/bin"))
BAD_INPUT = 2


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings that determine the table; their defaults are for a CPU."""

    model: str = ""  # A pretrained model: a folder or GGUF file. Empty: random weights.
    tasks: int = 1600  # Tasks of the forge, for training and test.
    style: str = "compact"  # The style of the forge's answers: compact or full.
    families: str = "elementwise,reduction"
    dialect: str = "cuda"  # The dialect of the answers: cuda or musa.
    operators: str = ""  # The families of operators; empty: all.
    depth: int = 4  # Operators of a task, at most.
    test_share: float = 0.1  # The share of operator structures for the test set.
    shown_share: float = 0.75  # The share of the others with solutions for SFT; the rest is for RL.
    solutions: int = 4  # Solutions of a task, at most.
    bugs_share: float = 0.4  # The share of training tasks with repairs of failed answers.
    vocabulary: int = 2000
    layers: int = 4
    width: int = 192
    heads: int = 6
    steps: int = 1600
    minutes: float = 0  # The duration of sft instead of steps; 0: steps.
    processes: int = 1  # For sft; each has a GPU, or a part of the cores.
    batch_tokens: int = 4096
    lr: float = 2e-3
    rft_tasks: int = 300  # 0: no rung rft.
    rft_samples: int = 6  # Answers to each of them.
    rft_steps: int = 200  # Steps of fine-tuning on the answers that passed.
    rl_steps: int = 20  # 0: no reinforcement learning.
    rl_multi_steps: int = 10
    rl_prompts: int = 8  # Prompts of a step.
    rl_samples: int = 12  # Answers to each of them.
    rl_lr: float = 5e-5
    rl_temperature: float = 1.3  # Single turns; above 1 more groups have both kinds of answers.
    held_out: int = 60  # Tasks of the benchmark.
    samples: int = 0  # Answers to each at temperature 1, beside the greedy one; 0: none.
    tokens_max: int = 320  # The length of an answer.
    batch: int = 1  # Answers generated at once; the batch changes the last bits of logits.
    device: str = "cpu"  # For training and sampling; only KernelBench's verdicts need it too.
    bench_device: str = "cpu"  # The device of greedy answers.
    kernelbench: str = ""  # A copy of KernelBench, to measure level 1. Empty: none.
    kernelbench_samples: int = 1  # Answers to each of its tasks; 1: the greedy one.
    seed: int = 1
    seeds: int = 1  # Runs of the rungs after sft.


QUICK = Settings(
    tasks=480,
    families="elementwise",
    operators="relu,abs,neg,square",
    test_share=0.2,
    shown_share=1,
    solutions=1,
    bugs_share=0,
    width=128,
    heads=4,
    layers=3,
    steps=300,
    batch_tokens=2048,
    lr=3e-3,
    rft_tasks=0,
    rl_steps=0,
    rl_multi_steps=0,
    held_out=48,
)
# All operators; twenty minutes on a GPU with sixteen cores beside it are the aim.
GPU = Settings(
    tasks=2700,
    families="all",
    test_share=0.06,
    layers=8,
    width=384,
    heads=12,
    steps=2000,
    batch_tokens=16384,
    lr=1e-3,
    rft_samples=4,
    rl_steps=12,
    rl_multi_steps=8,
    rl_prompts=16,
    rl_samples=8,
    rl_lr=2e-5,
    samples=8,
    tokens_max=640,
    batch=64,
    device="cuda",
)
# A pretrained model of some hundred million parameters, on a GPU: it can read the long form.
PRETRAINED = dataclasses.replace(
    GPU,
    style="full",
    minutes=15,
    batch_tokens=32768,
    lr=1e-4,
    tokens_max=2048,
    bench_device="cuda",
    kernelbench_samples=8,
)


def fail(message: str) -> NoReturn:
    print(f"{Path(sys.argv[0]).stem}: {message}", file=sys.stderr)
    sys.exit(BAD_INPUT)


def say(message: str) -> None:
    print(f"\033[1m==> {message}\033[0m", file=sys.stderr, flush=True)


def write_atomically(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


UNANSWERED = 4  # The exit code of bench if a prompt had no answer; the figures count that.


def run(program: str, *arguments: object) -> None:
    """Runs one of our programs, which prints a line about its error if it fails."""
    done = subprocess.run([str(BIN / program), *map(str, arguments)], check=False)
    if done.returncode not in (0, UNANSWERED):
        fail(f"{program} {arguments[0]} ended with {done.returncode}")


@dataclasses.dataclass(frozen=True)
class Stage:
    """A step that is finished once its output exists."""

    name: str
    output: Path
    make: Callable[[], None]


def run_stages(stages: Sequence[Stage]) -> None:
    """Runs the unfinished stages, so that a new call continues where the last one stopped."""
    for number, stage in enumerate(stages, 1):
        if not stage.output.exists():
            say(f"{number}/{len(stages)} {stage.name}")
            stage.make()


def make_tokenizer(text: Path, vocabulary: int, out: Path) -> None:
    part = out.with_suffix(".part.json")
    command = [sys.executable, ROOT / "tools/make_tokenizer.py", "--text", text,
               "--vocab", vocabulary, "--split", "lines", "--out", part]  # fmt: skip
    # One thread makes the merges reproducible.
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    if subprocess.run(list(map(str, command)), check=False, env=environment).returncode != 0:
        fail("the tokenizer could not be made")
    part.replace(out)


def claim(folder: Path, file: str, settings: Any) -> None:
    """Creates the run's folder, or reuses the folder of a run with the same settings."""
    path = folder / file
    text = json.dumps(dataclasses.asdict(settings), indent=2) + "\n"
    if path.exists() and path.read_text() != text:
        fail(f"{folder} holds a run with other settings: give another --out, or remove it")
    if not path.exists() and folder.is_dir() and any(folder.iterdir()):
        fail(f"{folder} holds something else: give another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except OSError as error:
        fail(f"--out {folder}: {error.strerror}")


class Learning:
    """The stages in one folder."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings

    def check_tools(self) -> None:
        if not find_spec("tokenizers"):
            fail(f"{sys.executable} lacks tokenizers: install it with its pip")
        if self.settings.model and not Path(self.settings.model).exists():
            fail(f"--model {self.settings.model}: there is no such folder or file")
        for program in ("musacoder", "musacoder-learn"):
            if not (BIN / program).exists():
                fail(f"{BIN / program} is not there: build it with ./run.sh build")

    def run_all(self) -> None:
        base = self.model_of("base")
        stages = [Stage("forge", self.folder / "sft.jsonl", self.forge)]
        if self.settings.model:
            stages.append(Stage("model", base, self.take))
        else:
            stages.append(Stage("tokenizer", self.folder / "tokenizer.json", self.tokenizer))
            stages.append(Stage("init", base, self.init))
        stages.append(Stage("sft", self.model_of("sft"), self.sft))
        stages += [*self.benches("base", 1), *self.benches("sft", 1)]
        for number in range(1, self.settings.seeds + 1):
            stages += self.rungs_of(number)
        run_stages(stages)
        self.report()

    def rungs_of(self, number: int) -> list[Stage]:
        """The rungs after sft under the seed of that number, with their benchmarks."""
        s = self.settings
        learned: dict[str, Callable[[], None]] = {
            "rft": partial(self.rft, number),
            "rl": partial(self.rl, number, "rl", s.rl_steps, turns=1),
            "rl-multi": partial(self.rl, number, "rl-multi", s.rl_multi_steps, turns=3),
        }
        stages: list[Stage] = []
        for rung in self.rungs()[2:]:
            name, model = with_seed(rung, number), self.model_of(rung, number)
            stages += [Stage(name, model, learned[rung]), *self.benches(rung, number)]
        return stages

    def benches(self, rung: str, number: int) -> list[Stage]:
        kinds = {"bench": self.bench}
        if self.settings.samples > 0 and rung != "base":
            kinds["sampled"] = self.sampled
        if self.settings.kernelbench:
            kinds["kernelbench"] = self.kernelbench
        home = self.home(rung, number)
        return [
            Stage(
                with_seed(f"{kind} {rung}", number),
                home / kind / rung / "summary.json",
                partial(measure, rung, number),
            )
            for kind, measure in kinds.items()
        ]

    def rungs(self) -> list[str]:
        """The models of the ladder, each trained from the previous one."""
        s = self.settings
        steps = {"rft": s.rft_tasks, "rl": s.rl_steps, "rl-multi": s.rl_multi_steps}
        return ["base", "sft"] + [name for name, size in steps.items() if size > 0]

    def home(self, rung: str, number: int) -> Path:
        """The folder of a rung in the run of that number; all runs share base and sft."""
        if number == 1 or rung in ("base", "sft"):
            return self.folder
        return self.folder / f"seed-{number}"

    def seed(self, number: int) -> int:
        return self.settings.seed + 1000 * (number - 1)

    def model_of(self, rung: str, number: int = 1) -> Path:
        home = self.home(rung, number)
        if rung == "base":
            return home / "base"
        return home / ("rft/run/model" if rung == "rft" else f"{rung}/model")

    def model_before(self, rung: str, number: int) -> Path:
        rungs = self.rungs()
        return self.model_of(rungs[rungs.index(rung) - 1], number)

    # ---- Stages ------------------------------------------------------------------------------

    def forge(self) -> None:
        """Makes the data. A model answers fine-tuned tasks right every time, so RL cannot learn
        from them.

        So each structure that is not held out has either solutions for SFT or tasks for RL.
        """
        s = self.settings
        limits = ["--operators", s.operators] if s.operators else []
        run("musacoder", "forge", "--tasks", s.tasks, "--seed", s.seed, "--style", s.style,
            "--dialect", s.dialect, "--families", s.families, *limits,
            "--depth", s.depth, "--test-share", s.test_share, "--bugs-share", s.bugs_share,
            "--solutions", s.solutions,
            "--jobs", os.cpu_count() or 1, "--out", self.folder / "data")  # fmt: skip
        rows = lines_of(self.folder / "data/sft.jsonl")
        shown = [row for row in rows if json.loads(row)["kind"] != "review"
                   and self.is_shown(json.loads(row)["operators"])]  # fmt: skip
        tasks = lines_of(self.folder / "data/rl.jsonl")
        new = [row for row in tasks
               if not self.is_shown(json.loads(row)["extra_info"]["operators"])]  # fmt: skip
        if not shown or (len(self.rungs()) > 2 and not new):
            fail("no structure for one of the rungs: give more --tasks")
        write_atomically(self.folder / "new_tasks.jsonl", "".join(new))
        write_atomically(self.folder / "sft.jsonl", "".join(shown))

    def is_shown(self, operators: list[str]) -> bool:
        share = hashlib.sha256(" ".join(operators).encode()).digest()[0] / 256
        return share < self.settings.shown_share

    def tokenizer(self) -> None:
        make_tokenizer(self.folder / "sft.jsonl", self.settings.vocabulary,
                       self.folder / "tokenizer.json")  # fmt: skip

    def init(self) -> None:
        s = self.settings
        run("musacoder-learn", "init", "--out", self.folder / "base", "--layers", s.layers,
            "--width", s.width, "--heads", s.heads, "--seed", s.seed,
            "--tokenizer", self.folder / "tokenizer.json")  # fmt: skip

    def take(self) -> None:
        """The pretrained model, as the folder base/."""
        model, base = Path(self.settings.model), self.folder / "base"
        if model.is_dir():
            base.symlink_to(model)
            return
        command = [
            sys.executable,
            str(ROOT / "tools/import_gguf.py"),
            str(model),
            "--out",
            str(base),
        ]
        if subprocess.run(command, check=False).returncode != 0:
            fail(f"{model} could not be read")

    def sft(self) -> None:
        s = self.settings
        data = self.folder / "sft.jsonl"
        length = ["--minutes", s.minutes] if s.minutes > 0 else ["--steps", s.steps]
        self.tune(self.folder / "base", data, self.folder / "sft", length, s.lr, s.seed)

    def tune(
        self, model: Path, data: Path, out: Path, length: Sequence[object], lr: float, seed: int
    ) -> None:
        s = self.settings
        run("musacoder-learn", "sft", "--model", model, "--data", data, "--out", out,
            *length, "--batch-tokens", s.batch_tokens,
            "--pack-tokens", max(s.batch_tokens // 4, 2048), "--lr", lr,
            "--device", s.device, "--processes", s.processes,
            "--seed", seed, "--resume")  # fmt: skip

    def rft(self, number: int) -> None:
        """Fine-tunes on passing answers together with the forge's solutions, so that none is
        forgotten.
        """
        s = self.settings
        home = self.home("rft", number) / "rft"
        drawn, model = home / "drawn", self.model_before("rft", number)
        run("musacoder-learn", "rft", "--model", model, "--out", drawn,
            "--data", self.folder / "new_tasks.jsonl", "--limit", s.rft_tasks,
            "--samples", s.rft_samples, "--repairs", 2, "--max-tokens", s.tokens_max,
            "--backend", "cpu", "--dialect", s.dialect, "--device", s.device,
            "--seed", self.seed(number))  # fmt: skip
        text = (drawn / "sft.jsonl").read_text() + (self.folder / "sft.jsonl").read_text()
        write_atomically(home / "data.jsonl", text)
        self.tune(model, home / "data.jsonl", home / "run",
                  ["--steps", s.rft_steps], s.lr / 10, self.seed(number))  # fmt: skip

    def rl_tasks(self, number: int, turns: int) -> Path:
        """The tasks from which RL can learn, according to rft's answers.

        With one turn these are tasks that were answered both right and wrong, since a group without
        spread has no gradient. With later turns and replays, tasks that were always answered wrong
        count, too.
        """
        new = self.folder / "new_tasks.jsonl"
        answers = self.home("rft", number) / "rft/drawn/episodes.jsonl"
        if not answers.exists():
            return new
        passed: dict[str, set[bool]] = {}
        for episode in map(json.loads, lines_of(answers)):
            outcome = episode["turns"][0]["outcome"]
            passed.setdefault(episode["task"], set()).add(outcome == "pass")
        kinds = [{True, False}] + ([{False}] if turns > 1 else [])
        rows = lines_of(new)
        some = [row for row in rows if passed.get(json.loads(row)["id"]) in kinds]
        if len(some) < self.settings.rl_prompts:
            return new
        path = self.home("rft", number) / f"rl_tasks_{turns}.jsonl"
        write_atomically(path, "".join(some))
        return path

    def rl(self, number: int, rung: str, steps: int, turns: int) -> None:
        s = self.settings
        run("musacoder-learn", "rl", "--model", self.model_before(rung, number),
            "--data", self.rl_tasks(number, turns), "--out", self.home(rung, number) / rung,
            "--steps", steps, "--prompts", s.rl_prompts, "--samples", s.rl_samples,
            "--turns", turns, "--max-tokens", s.tokens_max,
            "--temperature", s.rl_temperature if turns == 1 else 1, "--weight-decay", 0,
            "--lr", s.rl_lr, "--warmup", 0.1, "--bdr", 0.1 if turns > 1 else 0,
            *(["--filter-zero-spread", 1] if turns == 1 else []),
            "--backend", "cpu", "--dialect", s.dialect, "--device", s.device,
            "--seed", self.seed(number), "--resume")  # fmt: skip

    def bench(self, rung: str, number: int) -> None:
        s = self.settings
        self.measure(rung, number, "bench", *self.held_out(),
                     "--device", s.bench_device, "--batch", s.batch)  # fmt: skip

    def sampled(self, rung: str, number: int) -> None:
        s = self.settings
        self.measure(rung, number, "sampled", *self.held_out(),
                     "--samples", s.samples, "--temperature", 1,
                     "--device", s.device, "--batch", max(32, s.batch))  # fmt: skip

    def held_out(self) -> list[object]:
        s = self.settings
        suite = self.folder / "data/test.jsonl"
        return ["--suite", suite, "--limit", s.held_out, "--backend", "cpu"]

    def kernelbench(self, rung: str, number: int) -> None:
        """Measures KernelBench, with GPU tensors if there is a GPU for judging."""
        s = self.settings
        drawn = ["--samples", s.kernelbench_samples, "--temperature", 1]
        self.measure(rung, number, "kernelbench", "--suite", s.kernelbench, "--level", 1,
                     "--no-timing", *(drawn if s.kernelbench_samples > 1 else []),
                     "--device", s.bench_device, "--batch", s.batch)  # fmt: skip

    def measure(self, rung: str, number: int, kind: str, *arguments: object) -> None:
        s = self.settings
        below = {"base": None, "sft": None if kind == "sampled" else "base"}.get(rung, "sft")
        against = ["--against", self.folder / kind / below] if below else []
        run("musacoder", "bench", "--model", self.model_of(rung, number),
            "--max-tokens", s.tokens_max, "--seed", s.seed, "--dialect", s.dialect,
            "--jobs", max(2, (os.cpu_count() or 1) // 2),
            "--out", self.home(rung, number) / kind / rung, *arguments, *against)  # fmt: skip

    # ---- The report --------------------------------------------------------------------------

    def report(self) -> None:
        summaries = {rung: self.summary("bench", rung) for rung in self.rungs()}
        table = table_of(summaries)
        if self.settings.kernelbench:
            table += self.kernelbench_line()
        if self.settings.samples > 0:
            table += self.sampled_table()
        if self.settings.seeds > 1:
            table += self.pooled("bench", "greedy")
            table += self.pooled("sampled", "sampled") if self.settings.samples > 0 else ""
        drawn = self.folder / "rft/drawn/summary.json"
        if drawn.exists():
            table += diversity_of(json.loads(drawn.read_text()))
        write_atomically(self.folder / "report.md", table)
        if find_spec("matplotlib"):
            plot(self.folder, summaries)
        else:
            say(f"no report.png: {sys.executable} lacks matplotlib")
        print(table)
        last = self.model_of(self.rungs()[-1])
        say(f"{self.folder}/report.md, report.png; the trained model: {last}")

    def summary(self, kind: str, rung: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / kind / rung / "summary.json").read_text())
        return found

    def kernelbench_line(self) -> str:
        found = {rung: self.summary("kernelbench", rung) for rung in self.rungs()}
        tasks = found["base"]["groups"]["all"]["tasks"]
        lines = ""
        for k in sorted({1, self.settings.kernelbench_samples}):
            each = (f"{rung} {figure(one['groups']['all']['pass_at'].get(str(k)))}"
                    for rung, one in found.items())  # fmt: skip
            lines += f"KernelBench level 1, {tasks} tasks, Pass@{k}: {', '.join(each)}.\n"
        return lines

    def sampled_table(self) -> str:
        """Avg@k and Pass@k of the sampled answers, from sft on, since base answers nothing."""
        k = str(self.settings.samples)
        lines = [f"\n| temperature 1 | Avg@{k} | Pass@{k} | Avg@{k} against sft, paired |"]
        lines += ["|---|---|---|---|"]
        for rung in self.rungs()[1:]:
            summary = self.summary("sampled", rung)
            group, paired = summary["groups"]["all"], summary["paired"]
            lines.append(
                f"| {rung} | {figure(group['average'])} | {figure(group['pass_at'].get(k))} | "
                + (points(*(paired[key] for key in PAIRED)) if paired else "")
                + " |"
            )
        return "\n".join(lines) + "\n\n"

    def pooled(self, kind: str, name: str) -> str:
        """The rungs against sft over all seeds."""
        lines = []
        below = shares_of(self.folder / kind / "sft")
        for rung in self.rungs()[2:]:
            runs = [
                shares_of(self.home(rung, number) / kind / rung)
                for number in range(1, self.settings.seeds + 1)
            ]
            lines.append(f"{len(runs)} seeds, {name}: {rung} against sft {pool(below, runs)}.\n")
        return "".join(lines)


PAIRED = ("difference", "low", "high")
RESAMPLES = 2000
NOT_SCORED = ("infra", "unsupported")  # These outcomes are in no figure.


def with_seed(stage: str, number: int) -> str:
    return stage if number == 1 else f"{stage} seed {number}"


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def shares_of(folder: Path) -> dict[str, float]:
    """The fraction of passing answers for each task of a benchmark."""
    passed: dict[str, list[bool]] = {}
    for row in map(json.loads, lines_of(folder / "verdicts.jsonl")):
        kind = row["verdict"]["outcome"]["kind"]
        if kind not in NOT_SCORED:
            passed.setdefault(row["id"], []).append(kind == "pass")
    return {task: sum(some) / len(some) for task, some in passed.items()}


def paired(
    below: dict[str, float], runs: list[dict[str, float]]
) -> tuple[float, float, float, list[float]]:
    """Mean difference over tasks and runs, its 95 % bootstrap interval, and each run's."""
    return paired_runs([below] * len(runs), runs)


def paired_runs(
    below: list[dict[str, float]], runs: list[dict[str, float]]
) -> tuple[float, float, float, list[float]]:
    """The same for runs that each have their own run to compare with.

    The bootstrap for the interval resamples both tasks and runs, but not answers, so that it covers
    other tasks and seeds.
    """
    tasks = [task for task in below[0] if all(task in one for one in (*below, *runs))]
    each = [[one[task] - other[task] for task in tasks] for one, other in zip(runs, below)]
    rng = random.Random(0)
    means = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(each, k=len(each))
        places = rng.choices(range(len(tasks)), k=len(tasks))
        means.append(sum(some[place] for some in drawn for place in places))
    means = [one / (len(each) * len(tasks)) for one in sorted(means)]
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    by_run = [sum(some) / len(tasks) for some in each]
    return sum(by_run) / len(by_run), low, high, by_run


def pool(below: dict[str, float], runs: list[dict[str, float]]) -> str:
    value, low, high, each = paired(below, runs)
    by_run = ", ".join(f"{100 * one:+.1f}" for one in each)
    return f"{points(value, low, high)} (each: {by_run})"


def points(difference: float, low: float, high: float) -> str:
    return f"{100 * difference:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"


def figure(one: dict[str, float] | None) -> str:
    if one is None:
        return "-"
    value, low, high = (100 * one[key] for key in ("value", "low", "high"))
    return f"{value:.1f} % [{low:.1f}, {high:.1f}]"


def percent(group: dict[str, Any] | None) -> str:
    return figure(group["pass_at"].get("1") if group else None)


def table_of(summaries: dict[str, dict[str, Any]]) -> str:
    """Markdown table: Pass@1 of each model on held-out tasks, with 95 % intervals."""
    lines = [
        "| held-out tasks | number | " + " | ".join(f"{name} Pass@1" for name in summaries) + " |",
        "|---" * (2 + len(summaries)) + "|",
    ]
    for name, group in summaries["sft"]["groups"].items():
        figures = [percent(summary["groups"].get(name)) for summary in summaries.values()]
        lines.append(f"| {name} | {group['tasks']} | " + " | ".join(figures) + " |")
    lines.append("")
    for model, summary in summaries.items():
        if model == "base":
            continue
        paired, other = summary["paired"], "base" if model == "sft" else "sft"
        lines.append(
            f"Difference of {model} and {other} at the same {paired['tasks']} tasks: "
            f"{points(*(paired[key] for key in PAIRED))}."
        )
    for model, summary in summaries.items():
        outcomes = ", ".join(f"{n} {kind}" for kind, n in sorted(summary["outcomes"].items()))
        unscored = summary["groups"]["all"]["not_scored"]
        lines.append(f"Verdicts, {model}: {outcomes}; not scored {unscored}.")
    return "\n".join(lines) + "\n"


def diversity_of(drawn: dict[str, Any]) -> str:
    """The results of rejection sampling, and the diversity of kernels before and after drawing."""
    return (
        f"RFT: {drawn['passed']} of {drawn['answers']} answers passed, {drawn['solved']} of "
        f"{drawn['tasks']} tasks solved, {drawn['targets']} targets; kernel structures a solved "
        f"task {drawn['clusters']:.2f}, effective {drawn['effective_before']:.2f} among answers, "
        f"{drawn['effective_after']:.2f} among targets.\n"
    )


def plot(folder: Path, summaries: dict[str, dict[str, Any]]) -> None:
    """The loss over tokens, and Pass@1 by group with intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    rows = [row for row in map(json.loads, lines_of(folder / "sft/metrics.jsonl")) if "loss" in row]
    left.plot([row["step"] for row in rows], [row["loss"] for row in rows], linewidth=1)
    left.set(xlabel="step", ylabel="loss of the answer's tokens, nat", yscale="log")
    left.set_title("supervised fine-tuning")
    names = list(summaries["sft"]["groups"])
    height = 0.8 / len(summaries)
    for place, (model, summary) in enumerate(summaries.items()):
        offset = (place - (len(summaries) - 1) / 2) * height
        figures = [summary["groups"].get(name, {}).get("pass_at", {}).get("1") for name in names]
        known = [(i, one) for i, one in enumerate(figures) if one]
        values = [100 * one["value"] for _, one in known]
        spread = [
            [100 * (one["value"] - one["low"]) for _, one in known],
            [100 * (one["high"] - one["value"]) for _, one in known],
        ]
        places = [i + offset for i, _ in known]
        right.barh(places, values, height, xerr=spread, label=model, capsize=2)
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.set(xlabel="Pass@1 of held-out tasks, %, 95 % interval", xlim=(0, 100))
    right.legend()
    part = folder / "report.part.png"
    figure.savefig(part, dpi=130)
    part.replace(folder / "report.png")


def add_settings(parser: argparse.ArgumentParser, settings: type, except_: str = "") -> None:
    """Adds an option for each field of the dataclass, save for the one that has its own."""
    for field in dataclasses.fields(settings):
        if field.name != except_:
            kind = {"int": int, "float": float, "str": str}[str(field.type)]
            option = "--" + field.name.replace("_", "-")
            parser.add_argument(option, type=kind, help=argparse.SUPPRESS)


def changed_settings(settings: Any, arguments: argparse.Namespace) -> Any:
    """The settings with the values of the options that were given."""
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    names = given.keys() & {field.name for field in dataclasses.fields(settings)}
    return dataclasses.replace(settings, **{name: given[name] for name in names})


def settings_of(arguments: argparse.Namespace) -> Settings:
    larger = PRETRAINED if arguments.model else GPU if arguments.gpu else Settings()
    for name in ("model", "kernelbench"):
        if getattr(arguments, name):
            setattr(arguments, name, str(Path(getattr(arguments, name)).resolve()))
    settings: Settings = changed_settings(QUICK if arguments.quick else larger, arguments)
    return settings


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./run.sh learn", description="Forge, train and measure a small model."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="four operators, in minutes")
    size.add_argument("--gpu", action="store_true", help="all operators; trains on a GPU")
    parser.add_argument("--out", type=Path, help="folder of the run (build/learn, -quick, -gpu)")
    parser.add_argument("--model", help="a pretrained model to begin with: a folder or a GGUF file")
    add_settings(parser, Settings, except_="model")
    arguments = parser.parse_args()
    name = "build/learn" + ("-quick" if arguments.quick else "-gpu" if arguments.gpu else "")
    folder = arguments.out if arguments.out else ROOT / name
    learning = Learning(folder.resolve(), settings_of(arguments))
    learning.check_tools()
    claim(learning.folder, "settings.json", learning.settings)
    learning.run_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
