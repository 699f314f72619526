#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One real multi-turn RL run with all rules, and one each without PrimeEcho, BDR and MirrorPop.

python tools/rl_ablations.py --model rft/run/model --data new_tasks.jsonl --out ablations

All begin with the same model, tasks and seed, and are trained by `musacoder-learn rl`; what stands
behind `--` is given to it as well (`-- --device cuda --lr 2e-5`). The table is made of the runs'
metrics.jsonl, of those that are complete. A call ends by --minutes; the same call goes on with the
step that was cut short.

Without PrimeEcho the reward is that of the best turn (alpha 0, no bonus for early passes).
MirrorPop rejects what drifted between generator and trainer; both have the same weights here, so
there is drift of rounding only, and its column says whether anything was rejected at all.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("MC_BIN", ROOT / "build/dev/bin"))
BAD_INPUT = 2
CUT_SHORT = 3
RUNS: dict[str, tuple[str, ...]] = {
    "all": (),
    "no PrimeEcho": ("--alpha", "0", "--b-early", "0"),
    "no BDR": ("--bdr", "0"),
    "no MirrorPop": ("--delta", "off"),
}


def train(folder: Path, arguments: list[str], seconds: float) -> bool:
    """Whether the run is complete; one that is not is killed, and can be resumed."""
    if (folder / "model").exists():
        return True
    command = [str(BIN / "musacoder-learn"), "rl", "--out", str(folder), "--resume", *arguments]
    # A session of its own, so that the verifier ends with it.
    process = subprocess.Popen(command, start_new_session=True)
    try:
        code = process.wait(max(1.0, seconds))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    if code != 0:
        print(f"rl_ablations: musacoder-learn rl ended with {code}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    return True


def figures_of(folder: Path) -> dict[str, float | None]:
    """Means over the steps of a run; the accuracies also over its last half."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def mean(name: str, some: list[dict[str, Any]]) -> float | None:
        values = [row[name] for row in some if name in row]
        return sum(values) / len(values) if values else None

    late = rows[len(rows) // 2 :]
    replays = sum(row["bdr/replays"] for row in rows)
    return {
        "steps": len(rows),
        "first-turn accuracy": mean("accuracy_first", rows),
        "of the last half": mean("accuracy_first", late),
        "best-turn accuracy": mean("accuracy_best", rows),
        "of its last half": mean("accuracy_best", late),
        "turns to success": mean("turns_to_success", rows),
        "all-failed groups": mean("all_failed_share", rows),
        "replays": replays,
        "BDR solve rate": sum(row["bdr/solved"] for row in rows) / replays if replays else None,
        "drift": mean("drift", rows),
        "drift of those kept": mean("drift_kept", rows),
        "rejected": sum(row["rejected"] for row in rows),
        "KL to the first weights": mean("kl", late),
        "minutes": rows[-1]["elapsed_s"] / 60,
    }


def table_of(figures: dict[str, dict[str, float | None]]) -> str:
    names = list(next(iter(figures.values())))
    lines = ["| metric | " + " | ".join(figures) + " |", "|---" * (1 + len(figures)) + "|"]
    for name in names:
        cells = [figures[run][name] for run in figures]
        shown = ["-" if cell is None else f"{cell:.3g}" for cell in cells]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Ablations of the RL rules, side by side.")
    parser.add_argument("--model", type=Path, required=True, help="a model's folder")
    parser.add_argument("--data", type=Path, required=True, help="tasks with prompts")
    parser.add_argument("--out", type=Path, required=True, help="a folder for each run")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=320)
    parser.add_argument("--bdr", type=float, default=0.25, help="probability of a replay")
    parser.add_argument("--delta", default="0.05", help="MirrorPop's bound")
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=9, help="of this call")
    arguments, more = parser.parse_known_args()
    end = time.monotonic() + 60 * arguments.minutes
    figures = {}
    complete = True
    for name, changes in RUNS.items():
        folder = arguments.out / name.lower().replace(" ", "-")
        # Of an option that is given twice the last one would be an error, so changes come instead.
        options = {
            "--bdr": str(arguments.bdr),
            "--delta": arguments.delta,
            **dict(zip(changes[::2], changes[1::2])),
        }
        words = ["--model", arguments.model, "--data", arguments.data, "--steps", arguments.steps]
        words += ["--prompts", arguments.prompts, "--samples", arguments.samples]
        words += ["--turns", arguments.turns, "--max-tokens", arguments.max_tokens]
        words += ["--lr", arguments.lr, "--seed", arguments.seed, "--backend", "cpu"]
        words += ["--checkpoint-steps", 1]
        words += [word for option in options.items() for word in option]
        words += [word for word in more if word != "--"]
        if complete:
            complete = train(folder, [str(word) for word in words], end - time.monotonic())
        if (folder / "model").exists():
            figures[name] = figures_of(folder)
    if figures:
        table = table_of(figures)
        (arguments.out / "table.md").write_text(table)
        print(table)
    if not complete:
        print("not complete: the same call goes on", file=sys.stderr)
    return 0 if complete else CUT_SHORT


if __name__ == "__main__":
    sys.exit(main())
