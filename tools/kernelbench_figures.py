# SPDX-License-Identifier: Apache-2.0
"""Whether Pass@k and fast_p of `musacoder bench` are KernelBench's own, on the same verdicts.

Makes random verdicts (some timed, some wrong), lets `musacoder bench` summarise them, and asks the
functions of a KernelBench checkout for the same figures: `fastp` of src/kernelbench/score.py and
`calc_pass_at_k` of scripts/eval_from_generations.py, which are read from there and not copied.
Prints each pair; exits with 1 where two differ by more than 1e-9.

usage: tools/kernelbench_figures.py KERNELBENCH_CHECKOUT [--musacoder PROGRAM] [--rounds N]
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FAST_P = (0.0, 1.0, 1.5, 2.0)
TASK = "def get_inputs(): return []\ndef get_init_inputs(): return []\nclass Model: pass\n"


def function_of(path: Path, name: str) -> Callable[..., float]:
    """One function of a file that cannot be imported for what else it imports."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            names: dict[str, Any] = {"np": np}
            exec(compile(ast.Module([node], []), str(path), "exec"), names)
            found: Callable[..., float] = names[name]
            return found
    raise SystemExit(f"{path} has no function {name}: is this a KernelBench checkout?")


def estimate(median: float) -> dict[str, float]:
    return {"median": median, "low": 0.9 * median, "high": 1.1 * median}


def timed(speedup: float) -> dict[str, Any]:
    """An outcome of docs/verdict.schema.json."""
    clocks = {"sm_mhz_min": 0, "sm_mhz_max": 0, "memory_mhz": 0, "throttling": []}
    timing = {"mode": "enqueued", "cache": "inputs_cold", "batches": 1, "calls": 1,
              "calls_verified": 1, "tf32": False, "notes": [],
              "clocks": clocks}  # fmt: skip
    floor = {"time_us": 0, "bound": "", "bytes": 0, "operations": 0, "bandwidth_gbs": 0,
             "peak_tflops": 0}  # fmt: skip
    performance = {"speedup_eager": estimate(speedup), "speedup_compile": None,
                   "time_us": estimate(1.0), "time_eager_us": estimate(speedup),
                   "time_compile_us": None,
                   "timing": timing, "own_share": 1.0, "kernels": [],
                   "floor": floor}  # fmt: skip
    return {"kind": "pass", "trials": [], "performance": performance, "generality": 1.0}


def bench(program: str, folder: Path) -> None:
    command = [program, "bench", "--backend", "cpu", "--answers", str(folder / "answers.jsonl"),
               "--suite", str(folder / "suite"), "--out", str(folder / "out")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


def make_run(program: str, folder: Path, num_tasks: int, num_samples: int) -> None:
    """A benchmark whose answers are no code, so that judging them takes no time."""
    level = folder / "suite/level1"
    level.mkdir(parents=True)
    rows = []
    for task in range(1, num_tasks + 1):
        (level / f"{task}_task.py").write_text(TASK + f"# {task}\n")
        rows += [{"id": f"kernelbench:1/{task}", "sample": sample, "completion": "none"}
                 for sample in range(num_samples)]  # fmt: skip
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bench(program, folder)


def summarise(program: str, folder: Path, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Random verdicts in place of those that are there, and the summary of them."""
    path = folder / "out/verdicts.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if rng.random() < 0.6:
            row["verdict"]["outcome"] = timed(round(rng.uniform(0.3, 3.0), 3))
        else:
            row["verdict"]["outcome"] = {"kind": "oom", "stage": "forward", "limit_bytes": 1}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    bench(program, folder)
    return rows, json.loads((folder / "out/summary.json").read_text())["groups"]["all"]


def is_right(row: dict[str, Any]) -> bool:
    return bool(row["verdict"]["outcome"]["kind"] == "pass")


def theirs(rows: list[Any], checkout: Path) -> dict[str, float]:
    """KernelBench's figures: a time of 1 for a right sample, its speed-up for the baseline."""
    pass_at_k = function_of(checkout / "scripts/eval_from_generations.py", "calc_pass_at_k")
    fastp = function_of(checkout / "src/kernelbench/score.py", "fastp")
    by_task: dict[str, list[Any]] = {}
    for row in rows:
        by_task.setdefault(row["id"], []).append(row)
    num = len(next(iter(by_task.values())))
    out = {}
    for k in range(1, num + 1):
        values = [pass_at_k(num, sum(map(is_right, some)), k) for some in by_task.values()]
        out[f"pass@{k}"] = float(np.mean(values))
    if num == 1:
        right = [is_right(row) for row in rows]
        speeds = [
            row["verdict"]["outcome"]["performance"]["speedup_eager"]["median"] if ok else 1.0
            for row, ok in zip(rows, right)
        ]
        given = (np.array(right), np.array(speeds), np.ones(len(rows)), len(rows))
        out |= {f"fast_{p:g}": float(fastp(*given, p)) for p in FAST_P}
    return out


def ours(figures: dict[str, Any]) -> dict[str, float]:
    out = {f"pass@{k}": figure["value"] for k, figure in figures["pass_at"].items()}
    return out | {f"fast_{p}": figure["value"] for p, figure in figures["fast"].items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--musacoder", default=str(ROOT / "build/dev/bin/musacoder"))
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    rng = random.Random(1)
    num = 0
    worst = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        for num_samples in (1, 4):
            folder = Path(temporary) / str(num_samples)
            make_run(arguments.musacoder, folder, 25, num_samples)
            for _ in range(arguments.rounds):
                rows, figures = summarise(arguments.musacoder, folder, rng)
                mine, other = ours(figures), theirs(rows, arguments.checkout)
                shared = sorted(mine.keys() & other.keys())
                for name in shared:
                    worst = max(worst, abs(mine[name] - other[name]))
                    num += 1
            print(f"{num_samples} samples a task:",
                  ", ".join(f"{name} {mine[name]:.4f} and {other[name]:.4f}" for name in shared),
                  "in the last round")  # fmt: skip
    print(f"{num} figures compared, largest difference {worst:.3g}")
    return 0 if num > 0 and worst <= 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
