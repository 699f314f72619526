# SPDX-License-Identifier: Apache-2.0
"""From tasks to a model that writes kernels, on this machine: `./run.sh learn [--quick | --gpu]`.

Stages, each a program of its own that reads and writes files in one folder:

    forge      tasks, verified solutions and mistakes               data/
    tokenizer  byte-level BPE of the forge's own text               tokenizer.json
    init       a small model with random weights                    base/
    sft        supervised fine-tuning on the solutions              sft/
    bench      held-out tasks for both models, judged by MooreEval  bench/base, bench/trained
    report     a table and a plot                                   report.md, report.png

A stage that is done leaves a mark in done/; one that was cut short is taken up where it stopped.
So the script can be killed at any moment and started again, and ends with the same table.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("MC_BIN", ROOT / "build/dev/bin"))
BAD_INPUT = 2


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that the table depends on."""

    tasks: int  # Of the forge, for training and test.
    families: str
    operators: str  # Empty: all of these families.
    test_share: float  # Of the structures of operators.
    vocabulary: int
    layers: int
    width: int
    heads: int
    steps: int
    batch_tokens: int
    lr: float
    held_out: int  # Tasks of the benchmark.
    tokens_max: int  # Of an answer.
    batch: int  # Answers made at once: what is beside one changes the last bits of its logits.
    device: str  # Of the fine-tuning; answers are made on the CPU, and judged on its backend.
    seed: int


FULL = Settings(
    tasks=1200,
    families="elementwise,reduction",
    operators="",
    test_share=0.1,
    vocabulary=2000,
    layers=4,
    width=192,
    heads=6,
    steps=1600,
    batch_tokens=4096,
    lr=2e-3,
    held_out=60,
    tokens_max=320,
    batch=1,
    device="cpu",
    seed=1,
)
QUICK = dataclasses.replace(
    FULL,
    tasks=160,
    operators="relu,abs,neg,square",
    test_share=0.3,
    width=128,
    heads=4,
    layers=3,
    steps=600,
    batch_tokens=1024,
    lr=4e-3,
    held_out=16,
)
# All operators, in ten minutes on a GPU with sixteen cores beside it.
GPU = dataclasses.replace(
    FULL,
    tasks=4000,
    families="all",
    test_share=0.04,
    layers=8,
    width=384,
    heads=12,
    steps=5000,
    batch_tokens=16384,
    lr=1e-3,
    tokens_max=640,
    batch=64,
    device="cuda",
)


def fail(message: str) -> NoReturn:
    print(f"learn: {message}", file=sys.stderr)
    sys.exit(BAD_INPUT)


def say(message: str) -> None:
    print(f"\033[1m==> {message}\033[0m", file=sys.stderr, flush=True)


def write_atomically(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


def run(program: str, *arguments: object) -> None:
    """Runs one of our programs; its own line says what is wrong when it fails."""
    done = subprocess.run([str(BIN / program), *map(str, arguments)], check=False)
    if done.returncode != 0:
        fail(f"{program} {arguments[0]} ended with {done.returncode}")


class Learning:
    """The stages in one folder."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings

    def check_tools(self) -> None:
        if not find_spec("tokenizers"):
            fail(f"{sys.executable} lacks tokenizers: install it with its pip")
        for program in ("musacoder", "musacoder-learn"):
            if not (BIN / program).exists():
                fail(f"{BIN / program} is not there: build it with ./run.sh build")

    def claim(self) -> None:
        """The folder is this run's: made, or left by one with the same settings."""
        path = self.folder / "settings.json"
        text = json.dumps(dataclasses.asdict(self.settings), indent=2) + "\n"
        if path.exists() and path.read_text() != text:
            fail(f"{self.folder} holds a run with other settings: give another --out, or remove it")
        if not path.exists() and self.folder.exists() and any(self.folder.iterdir()):
            fail(f"{self.folder} holds something else: give another --out")
        (self.folder / "done").mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)

    def run_all(self) -> None:
        stages: list[tuple[str, Callable[[], None]]] = [
            ("forge", self.forge),
            ("tokenizer", self.tokenizer),
            ("init", self.init),
            ("sft", self.sft),
            ("bench base", lambda: self.bench("base", self.folder / "base")),
            ("bench trained", lambda: self.bench("trained", self.folder / "sft/model")),
        ]
        for number, (name, stage) in enumerate(stages, 1):
            mark = self.folder / "done" / name.replace(" ", "_")
            if mark.exists():
                continue
            say(f"{number}/{len(stages)} {name}")
            start = time.monotonic()
            stage()
            write_atomically(mark, f"{time.monotonic() - start:.1f} s\n")
        self.report()

    # ---- Stages ------------------------------------------------------------------------------

    def forge(self) -> None:
        s = self.settings
        limits = ["--operators", s.operators] if s.operators else []
        run("musacoder", "forge", "--tasks", s.tasks, "--seed", s.seed, "--style", "compact",
            "--families", s.families, *limits, "--test-share", s.test_share,
            "--jobs", os.cpu_count() or 1, "--out", self.folder / "data")  # fmt: skip

    def tokenizer(self) -> None:
        s = self.settings
        part = self.folder / "tokenizer.part.json"
        script = ROOT / "tools/make_tokenizer.py"
        command = [sys.executable, str(script), "--text", str(self.folder / "data/sft.jsonl"),
                   "--vocab", str(s.vocabulary), "--split", "lines",
                   "--out", str(part)]  # fmt: skip
        # One thread, so that the merges are the same every time.
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
        if subprocess.run(command, check=False, env=environment).returncode != 0:
            fail("the tokenizer could not be made")
        part.replace(self.folder / "tokenizer.json")

    def init(self) -> None:
        s = self.settings
        shutil.rmtree(self.folder / "base", ignore_errors=True)
        run("musacoder-learn", "init", "--out", self.folder / "base", "--layers", s.layers,
            "--width", s.width, "--heads", s.heads, "--seed", s.seed,
            "--tokenizer", self.folder / "tokenizer.json")  # fmt: skip

    def sft(self) -> None:
        s = self.settings
        run("musacoder-learn", "sft", "--model", self.folder / "base",
            "--data", self.folder / "data/sft.jsonl", "--out", self.folder / "sft",
            "--steps", s.steps, "--batch-tokens", s.batch_tokens,
            "--pack-tokens", max(s.batch_tokens // 4, 2048), "--lr", s.lr,
            "--device", s.device, "--seed", s.seed, "--resume")  # fmt: skip

    def bench(self, name: str, model: Path) -> None:
        s = self.settings
        other = self.folder / "bench/base"
        against = ["--against", other] if name != "base" else []
        run("musacoder", "bench", "--model", model, "--suite", self.folder / "data/test.jsonl",
            "--limit", s.held_out, "--max-tokens", s.tokens_max, "--seed", s.seed,
            "--batch", s.batch, "--backend", "cpu", "--jobs", max(2, (os.cpu_count() or 1) // 2),
            "--out", self.folder / "bench" / name, *against)  # fmt: skip

    # ---- The report --------------------------------------------------------------------------

    def report(self) -> None:
        summaries = {
            name: json.loads((self.folder / "bench" / name / "summary.json").read_text())
            for name in ("base", "trained")
        }
        table = table_of(summaries["base"], summaries["trained"])
        write_atomically(self.folder / "report.md", table)
        if find_spec("matplotlib"):
            plot(self.folder, summaries)
        else:
            say(f"no report.png: {sys.executable} lacks matplotlib")
        print(table)
        say(f"{self.folder}/report.md, report.png; the trained model: {self.folder}/sft/model")


def percent(group: dict[str, Any] | None) -> str:
    figure = group["pass_at"].get("1") if group else None
    if figure is None:
        return "-"
    value, low, high = (100 * figure[key] for key in ("value", "low", "high"))
    return f"{value:.1f} % [{low:.1f}, {high:.1f}]"


def table_of(base: dict[str, Any], trained: dict[str, Any]) -> str:
    """Markdown: Pass@1 of held-out tasks, of both models, with 95 % intervals."""
    lines = ["| held-out tasks | number | base Pass@1 | trained Pass@1 |", "|---|---|---|---|"]
    for name, group in trained["groups"].items():
        before = percent(base["groups"].get(name))
        lines.append(f"| {name} | {group['tasks']} | {before} | {percent(group)} |")
    paired = trained["paired"]
    lines += [
        "",
        f"Difference at the same {paired['tasks']} tasks: {100 * paired['difference']:+.1f} points "
        f"[{100 * paired['low']:+.1f}, {100 * paired['high']:+.1f}].",
    ]
    for name, summary in (("base", base), ("trained", trained)):
        outcomes = ", ".join(f"{n} {kind}" for kind, n in sorted(summary["outcomes"].items()))
        unscored = summary["groups"]["all"]["not_scored"]
        lines.append(f"Verdicts, {name}: {outcomes}; not scored {unscored}.")
    return "\n".join(lines) + "\n"


def plot(folder: Path, summaries: dict[str, dict[str, Any]]) -> None:
    """The loss over tokens, and Pass@1 by group with intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    rows = [json.loads(line) for line in (folder / "sft/metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "loss" in row]
    left.plot([row["step"] for row in rows], [row["loss"] for row in rows], linewidth=1)
    left.set(xlabel="step", ylabel="loss of the answer's tokens, nat", yscale="log")
    left.set_title("supervised fine-tuning")
    names = list(summaries["trained"]["groups"])
    for offset, (model, summary) in zip((-0.2, 0.2), summaries.items()):
        figures = [summary["groups"].get(name, {}).get("pass_at", {}).get("1") for name in names]
        known = [(i, one) for i, one in enumerate(figures) if one]
        values = [100 * one["value"] for _, one in known]
        spread = [
            [100 * (one["value"] - one["low"]) for _, one in known],
            [100 * (one["high"] - one["value"]) for _, one in known],
        ]
        right.barh([i + offset for i, _ in known], values, 0.4, xerr=spread, label=model, capsize=2)
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.set(xlabel="Pass@1 of held-out tasks, %, 95 % interval", xlim=(0, 100))
    right.legend()
    part = folder / "report.part.png"
    figure.savefig(part, dpi=130)
    part.replace(folder / "report.png")


def settings_of(arguments: argparse.Namespace) -> Settings:
    settings = QUICK if arguments.quick else GPU if arguments.gpu else FULL
    changes = {
        field.name: getattr(arguments, field.name)
        for field in dataclasses.fields(Settings)
        if getattr(arguments, field.name) is not None
    }
    return dataclasses.replace(settings, **changes)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./run.sh learn", description="Forge, fine-tune and measure a small model."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="four operators, in minutes")
    size.add_argument("--gpu", action="store_true", help="all operators; trains on a GPU")
    parser.add_argument("--out", type=Path, help="folder of the run (build/learn, -quick, -gpu)")
    for field in dataclasses.fields(Settings):
        kind = {"int": int, "float": float, "str": str}[str(field.type)]
        parser.add_argument("--" + field.name.replace("_", "-"), type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    name = "build/learn" + ("-quick" if arguments.quick else "-gpu" if arguments.gpu else "")
    folder = arguments.out if arguments.out else ROOT / name
    learning = Learning(folder.resolve(), settings_of(arguments))
    learning.check_tools()
    learning.claim()
    learning.run_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
