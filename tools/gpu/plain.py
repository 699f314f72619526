# SPDX-License-Identifier: Apache-2.0
"""Candidates of the corpus in plain PyTorch: what MooreEval's figures are held against.

A script that measures in a process of its own calls itself: `measure_apart` starts it with --here,
and there `measure_here` prints a line of JSON for each candidate.

What MooreEval compiled is loaded from its cache where it is there, and built by PyTorch else, a
minute each. All this trusts the candidates.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measured
from measured import ROOT, Json, case_named

TIMEOUT_S = 600  # A candidate.


@dataclass
class Models:
    """A task's own model and the candidate's, with the same parameters, and inputs for them."""

    eager: Callable[..., object]
    own: Callable[..., object]
    draw: Callable[[], list[Any]]  # New inputs, on the device.
    inputs: list[Any]


def parser(description: str, candidates: Sequence[str]) -> argparse.ArgumentParser:
    """With what every script that measures in plain PyTorch takes."""
    made = measured.parser(description, candidates)
    made.add_argument("--artifacts", type=Path, default=default_artifacts())
    made.add_argument("--here", action="store_true", help="measure here, and print only JSON")
    return made


def load(name: str) -> Models:
    """On the device, without TF32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    case = case_named(name)
    task = module_of(task_source(case.task), "task")
    candidate = module_of(case.response, "candidate")
    torch.manual_seed(0)

    def draw() -> list[Any]:
        with torch.device("cuda"):
            drawn: list[Any] = on_device(list(task.get_inputs()))
        return drawn

    inputs = draw()
    eager = task.Model(*task.get_init_inputs()).cuda()
    own = candidate.ModelNew(*task.get_init_inputs()).cuda()
    own.load_state_dict(eager.state_dict(), strict=False)
    return Models(eager, own, draw, inputs)


def on_device(value: Any) -> Any:
    """With every tensor in it, in lists and tuples too, on the device."""
    import torch

    if torch.is_tensor(value):
        return value.cuda()
    if isinstance(value, (list, tuple)):
        moved = [on_device(one) for one in value]
        return moved if isinstance(value, list) else tuple(moved)
    return value


def tensors_in(value: Any) -> Iterator[Any]:
    import torch

    if torch.is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_in(one)


def num_bytes(inputs: list[Any]) -> int:
    return sum(tensor.nbytes for tensor in tensors_in(inputs))


def use_artifacts(folder: Path) -> None:
    """From now on PyTorch gives what is compiled already, where the folder has it."""
    from torch.utils import cpp_extension

    sys.path.insert(0, str(ROOT))
    from harness.contestant import extensions

    normal_forms = {
        "load_inline": extensions.normal_form_inline,
        "load": extensions.normal_form_load,
    }
    compiled = compiled_extensions(folder)
    for name, normal_form in normal_forms.items():
        build = getattr(cpp_extension, name)
        setattr(cpp_extension, name, loader(build, normal_form, compiled))


def loader(
    build: Callable[..., Any], normal_form: Callable[..., Json], compiled: dict[str, Path]
) -> Callable[..., Any]:
    """Builds only what is not compiled."""

    def load(*args: Any, **kwargs: Any) -> Any:
        library = compiled.get(normal_form(args, kwargs)["key"])
        return build(*args, **kwargs) if library is None else imported(library)

    return load


def compiled_extensions(folder: Path) -> dict[str, Path]:
    """By key, the libraries that nvcc compiled; the newest of those that are alike."""
    found = {}
    for path in sorted(folder.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime):
        manifest = json.loads(path.read_text())
        if manifest.get("kernels"):  # The CPU backend's have none.
            found[manifest["key"]] = path.parent / f"{manifest['name']}.so"
    return found


def imported(library: Path) -> types.ModuleType:
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    loader = ExtensionFileLoader(library.stem, str(library))
    spec = spec_from_file_location(library.stem, library, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def module_of(source: str, name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def task_source(task: str) -> str:
    """Of tasks/, or of the KernelBench copy that $MC_KERNELBENCH names."""
    if not task.startswith("kernelbench:"):
        return (ROOT / "tasks" / f"{task}.py").read_text()
    level, problem = task.removeprefix("kernelbench:").split("/")
    folder = Path(os.environ["MC_KERNELBENCH"])
    for line in (folder / f"level{level}.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["problem_id"] == int(problem):
            return str(row["code"])
    raise LookupError(f"{folder} has no {task}")


def default_artifacts() -> Path:
    cache = os.environ.get("MC_CACHE_DIR")
    if cache is not None:
        return Path(cache) / "artifacts"
    above = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return Path(above) / "musacoder/artifacts"


# ---- A process of their own ---------------------------------------------------------------------


def measure_here(measure: Callable[[Models], Json], names: Sequence[str], artifacts: Path) -> None:
    """Prints a line of JSON for each candidate, as soon as it is measured; progress to stderr."""
    import torch

    use_artifacts(artifacts)
    for name in names:
        start = time.monotonic()
        with contextlib.redirect_stdout(sys.stderr):  # For what candidates print.
            figures = measured_or_error(measure, name)
        print(json.dumps({"candidate": name, **figures}), flush=True)
        print(f"{name}: {time.monotonic() - start:.1f} s in plain PyTorch", file=sys.stderr)
        gc.collect()
        torch.cuda.empty_cache()


def measured_or_error(measure: Callable[[Models], Json], name: str) -> Json:
    import torch

    try:
        with torch.no_grad():
            return measure(load(name))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def measure_apart(
    script: Sequence[str], names: Sequence[str], arguments: argparse.Namespace
) -> dict[str, Json]:
    """By candidate, what another process found in time; and a line for each error."""
    command = [sys.executable, *script, "--here", "--artifacts", str(arguments.artifacts), *names]
    limit = TIMEOUT_S * len(names) if arguments.limit is None else arguments.limit
    with tempfile.TemporaryFile("w+") as output:
        try:
            done = subprocess.run(command, stdout=output, timeout=limit)
            ending = f"exit code {done.returncode}"
        except subprocess.TimeoutExpired as error:
            ending = f"over {error.timeout:.0f} s"
        output.seek(0)
        lines = [json.loads(line) for line in output if line.startswith('{"candidate":')]
    found = {line["candidate"]: line for line in lines}
    for name in names:
        if name not in found:
            print(f"{name}: not measured in plain PyTorch: {ending}")
        elif "error" in found[name]:
            print(f"{name}: not measured in plain PyTorch: {found[name]['error'][-1000:]}")
    return {name: figures for name, figures in found.items() if "error" not in figures}
