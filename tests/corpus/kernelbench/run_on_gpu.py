# SPDX-License-Identifier: Apache-2.0
"""Runs the KernelBench candidates of this folder on a real NVIDIA GPU, at small sizes.

Everywhere else they are judged by emulation; this script shows that what the emulator accepts is
CUDA.  It trusts the candidates, so it is no verifier: run it on this folder only.

    python3 tests/corpus/kernelbench/run_on_gpu.py --suite DIR [--jobs 16] [level/id ...]

DIR holds level1.jsonl and so on.  The sizes come from sizes.json beside this file.  It needs a
GPU, nvcc, ninja and a PyTorch built for CUDA.  Exit code 0 if all candidates are right.
With --references only the references are run, on the CPU: a check of sizes.json.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 500
TOLERANCE = 1e-4


def load_task(suite: pathlib.Path, name: str) -> types.ModuleType:
    level, problem = (int(part) for part in name.split("/"))
    with open(suite / f"level{level}.jsonl", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["problem_id"] == problem:
                module = types.ModuleType("task")
                exec(compile(row["code"], name, "exec"), module.__dict__)
                return module
    raise LookupError(f"{suite} has no task {name}")


def resize(task: types.ModuleType, sizes: dict[str, Any]) -> None:
    for key, value in sizes.items():
        if not hasattr(task, key):
            raise LookupError(f"the task has no constant {key}")
        was_tuple = isinstance(getattr(task, key), tuple)
        setattr(task, key, tuple(value) if was_tuple else value)


def load_candidate(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("candidate", HERE / f"level{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the candidate for {name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def perturb(state: dict[str, torch.Tensor]) -> None:
    for value in state.values():
        if value.is_floating_point():
            value.mul_(1.0 + 0.3 * torch.rand_like(value)).add_(0.01)


def to_device(values: list[Any], device: str) -> list[Any]:
    return [v.to(device) if torch.is_tensor(v) else v for v in values]


def compare(expected: torch.Tensor, got: torch.Tensor, where: str) -> None:
    rtol, atol = 0.0, 0.0
    if expected.is_floating_point():
        rtol = TOLERANCE
        atol = TOLERANCE * expected.double().square().mean().sqrt().item()
    try:
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from error


def check_case(
    task: types.ModuleType, candidate: types.ModuleType | None, where: str, training: bool
) -> None:
    device = "cpu" if candidate is None else "cuda"
    reference = task.Model(*task.get_init_inputs()).to(device).train(training)
    inputs = to_device(task.get_inputs(), device)
    with torch.no_grad():
        perturb(reference.state_dict())
        if candidate is None:
            reference(*inputs)
            return
        mine = candidate.ModelNew(*task.get_init_inputs()).to(device).train(training)
        mine.load_state_dict(reference.state_dict())
        before = copy.deepcopy(inputs)
        got = mine(*inputs)
        torch.cuda.synchronize()
        expected = reference(*before)
    compare(expected, got, where)
    for was, now in zip(before, inputs):
        assert not torch.is_tensor(was) or torch.equal(was, now), f"{where}: an input was changed"
    for key, value in reference.state_dict().items():
        compare(value, mine.state_dict()[key], f"{where}, {key} after the call")


def check_one(suite: pathlib.Path, name: str, references_only: bool) -> None:
    torch.backends.cudnn.allow_tf32 = False
    candidate = None if references_only else load_candidate(name)
    sizes = json.loads((HERE / "sizes.json").read_text(encoding="utf-8"))
    for case, constants in enumerate(sizes[name]):
        for training in (True, False):
            torch.manual_seed(case)
            task = load_task(suite, name)
            resize(task, constants)
            check_case(task, candidate, f"{constants}, training {training}", training)


def run_child(arguments: list[str], name: str) -> tuple[str, bool, str]:
    start = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, __file__, *arguments, "--one", name],
            env=dict(os.environ, MAX_JOBS="1"),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        ok, output = done.returncode == 0, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        ok, output = False, f"no answer in {TIMEOUT_S} s"
    return name, ok, f"{time.monotonic() - start:.0f} s" if ok else output[-2500:]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--references", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.one:
        check_one(options.suite, options.one, options.references)
        return 0
    names = options.names or [
        f"{path.parent.name.removeprefix('level')}/{path.stem}"
        for path in sorted(HERE.glob("level*/*.py"))
    ]
    arguments = ["--suite", str(options.suite)] + ["--references"] * options.references
    failures = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, ok, text in pool.map(lambda n: run_child(arguments, n), names):
            failures += not ok
            print("ok  " if ok else "FAIL", name, text, flush=True)
    print(f"{len(names) - failures} of {len(names)} are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
