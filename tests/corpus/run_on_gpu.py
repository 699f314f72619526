# SPDX-License-Identifier: Apache-2.0
"""Runs the honest candidates on a real NVIDIA GPU, with PyTorch's own load_inline and nvcc.

The corpus is judged by emulation everywhere else; this script is the check that what the emulator
accepts is CUDA.  It trusts the candidates, so it is no verifier: run it on this corpus only.

    python3 tests/corpus/run_on_gpu.py [--jobs 16] [family/name ...]

It needs a GPU, nvcc, ninja and a PyTorch built for CUDA.  Exit code 0 if all candidates are right.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import os
import pathlib
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor

CORPUS = pathlib.Path(__file__).resolve().parent
TASKS = CORPUS.parent.parent / "tasks"
NO_SIZE = {"KERNEL_SIZE", "STRIDE", "PADDING", "DILATION"}  # Constants that a variant leaves alone.
TIMEOUT_S = 400


def load_module(path: pathlib.Path, name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def resized(task_path: pathlib.Path, variant: str) -> types.ModuleType:
    """The task with its sizes as they are, less one, or about twice as large."""
    task = load_module(task_path, "task_" + variant)
    for name, value in list(vars(task).items()):
        if type(value) is int and not name.startswith("_") and name not in NO_SIZE:
            sizes = {"native": value, "smaller": max(1, value - 1), "larger": 2 * value + 1}
            setattr(task, name, sizes[variant])
    return task


def check_one(name: str) -> None:
    """Raises AssertionError where the candidate and the reference differ."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    candidate = load_module(CORPUS / "honest" / (name + ".py"), "candidate")
    for variant in ("native", "smaller", "larger"):
        task = resized(TASKS / (name + ".py"), variant)
        for seed, scale in ((0, 1.0), (1, 1.0), (2, 5.0)):
            torch.manual_seed(seed)
            reference = task.Model(*task.get_init_inputs()).cuda()
            mine = candidate.ModelNew(*task.get_init_inputs()).cuda()
            with torch.no_grad():
                for value in reference.state_dict().values():
                    if value.is_floating_point():
                        value.mul_(1.0 + 0.3 * torch.rand_like(value)).add_(0.01)
            mine.load_state_dict(reference.state_dict())
            inputs = [
                (x * scale if torch.is_tensor(x) and x.is_floating_point() else x)
                for x in task.get_inputs()
            ]
            inputs = [x.cuda() if torch.is_tensor(x) else x for x in inputs]
            with torch.no_grad():
                expected = reference(*copy.deepcopy(inputs))
                got = mine(*copy.deepcopy(inputs))
            torch.cuda.synchronize()
            compare(expected, got, f"{variant}, seed {seed}, scale {scale}")


def compare(expected: object, got: object, where: str) -> None:
    import torch

    if isinstance(expected, (tuple, list)):
        assert isinstance(got, (tuple, list)) and len(got) == len(expected), where
        for e, g in zip(expected, got):
            compare(e, g, where)
        return
    assert isinstance(expected, torch.Tensor) and isinstance(got, torch.Tensor), where
    narrow = expected.dtype in (torch.float16, torch.bfloat16)
    tolerance = 1e-2 if narrow else 2e-4
    rtol = tolerance if expected.is_floating_point() else 0.0
    atol = rtol * max(1.0, expected.double().square().mean().sqrt().item())
    try:
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from error


def run_child(name: str) -> tuple[str, bool, str]:
    env = dict(os.environ, MAX_JOBS="1")
    start = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name],
            env=env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        ok, output = done.returncode == 0, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        ok, output = False, f"no answer in {TIMEOUT_S} s"
    return name, ok, f"{time.monotonic() - start:.0f} s" if ok else output[-3000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.one:
        check_one(options.one)
        return 0
    honest = CORPUS / "honest"
    names = options.names or sorted(
        p.relative_to(honest).with_suffix("").as_posix() for p in honest.rglob("*.py")
    )
    failures = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, ok, text in pool.map(run_child, names):
            failures += not ok
            print("ok  " if ok else "FAIL", name, text, flush=True)
    print(f"{len(names) - failures} of {len(names)} candidates are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
