# SPDX-License-Identifier: Apache-2.0
"""MooreEval's figures beside those of triton.testing.do_bench and of PyTorch's profiler.

    python3 tools/gpu/do_bench.py [--artifacts DIR] [--out FILE] [CANDIDATE ...]

For each task the eager Model and ModelNew are timed in one process of their own, at native shapes,
with inputs on the device and TF32 off. do_bench puts a pair of events around each call behind a
flush of the L2, so a short call's launch is in its figure; the profiler (CUPTI) adds up what the
device did. Each call there has inputs that are not in the L2, as MooreEval's have.

What MooreEval compiled is loaded from its cache where it is there, and built by PyTorch's
load_inline else. This script trusts the candidates, so it is no verifier.
"""

from __future__ import annotations

import copy
import json
import math
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured
from figures import table
from measured import ROOT, Case, Json, Measurements

CANDIDATES = (
    "elementwise/swish",
    "elementwise/gelu_tanh",
    "reduction/row_sum",
    "reduction/column_max",
    "softmax/softmax_rows",
    "normalisation/layer_norm",
    "scan/cumsum_rows",
    "matmul/tiled",
    "convolution/conv2d_strided",
    "fusion/attention",
)
HEADS = (
    "candidate",
    "do_bench: eager us",
    "own us",
    "speed-up",
    "MooreEval's",
    "ratio",
    "time us",
    "kernels us",
    "over kernels us",
)
COPIES_MAX = 1000
CALLS = 200
TIMEOUT_S = 600


# ---- In a process of its own --------------------------------------------------------------------


def measure(case: Case, artifacts: Path) -> Json:
    """Microseconds a call of both models, by both means."""
    import torch
    from triton.testing import do_bench  # type: ignore[import-untyped]

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    use_artifacts(artifacts)
    task = module_of(task_source(case.task), "task")
    candidate = module_of(case.response, "candidate")
    torch.manual_seed(0)
    inputs = [x.cuda() if torch.is_tensor(x) else x for x in task.get_inputs()]
    eager = task.Model(*task.get_init_inputs()).cuda()
    own = candidate.ModelNew(*task.get_init_inputs()).cuda()
    own.load_state_dict(eager.state_dict(), strict=False)
    figures: Json = {}
    with torch.no_grad():
        for name, model in (("eager", eager), ("own", own)):
            call = bound(model, inputs)
            figures[f"do_bench_{name}_us"] = 1e3 * do_bench(call, return_mode="median")
            figures[f"kernels_{name}_us"] = device_us(model, cold_copies(inputs))
    return figures


def bound(model: Callable[..., object], inputs: list[Any]) -> Callable[[], object]:
    return lambda: model(*inputs)


def cold_copies(inputs: list[Any]) -> list[list[Any]]:
    """As many sets of inputs as fill the L2 twice."""
    import torch

    nbytes = sum(x.nbytes for x in inputs if torch.is_tensor(x))
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    count = min(COPIES_MAX, max(2, math.ceil(2 * cache / max(1, nbytes))))
    return [copy.deepcopy(inputs) for _ in range(count)]


def device_us(model: Callable[..., object], copies: list[list[Any]]) -> float:
    """What the device did in a call: kernels, copies and fills."""
    import torch
    from torch._C._autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    total = 0.0
    for _ in range(2):  # The first time around, CUPTI and the kernels are still to be loaded.
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            for number in range(CALLS):
                model(*copies[number % len(copies)])
            torch.cuda.synchronize()
        events = [one for one in profiled.events() if one.device_type == DeviceType.CUDA]
        total = sum(one.self_device_time_total for one in events)
    return total / CALLS


def use_artifacts(folder: Path) -> None:
    """From now on load_inline gives what is compiled already, where the folder has it."""
    from torch.utils import cpp_extension

    sys.path.insert(0, str(ROOT))
    from harness import extensions

    compiled = compiled_extensions(folder)
    build: Any = cpp_extension.load_inline

    def load_inline(*args: Any, **kwargs: Any) -> Any:
        extension = extensions.normal_form_inline(args, kwargs)
        library = compiled.get(extension["key"])
        return build(*args, **kwargs) if library is None else imported(library)

    setattr(cpp_extension, "load_inline", load_inline)


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


# ---- All of them --------------------------------------------------------------------------------


def measure_apart(case: Case, artifacts: Path) -> Json | None:
    command = [sys.executable, __file__, "--one", case.name, "--artifacts", str(artifacts)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        print(f"{case.name}: no answer in {TIMEOUT_S} s")
        return None
    if done.returncode != 0:
        print(f"{case.name}: {done.stderr[-1000:]}")
        return None
    figures: Json = json.loads(done.stdout.splitlines()[-1])
    return figures


def compared(name: str, figures: Json, performance: Json) -> Json:
    """Both views of one candidate; `ratio` is MooreEval's speed-up over do_bench's."""
    speedup = figures["do_bench_eager_us"] / figures["do_bench_own_us"]
    return {
        "candidate": name,
        **figures,
        "speedup_do_bench": speedup,
        "speedup_eager": performance["speedup_eager"],
        "ratio": performance["speedup_eager"]["median"] / speedup,
        "time_us": performance["time_us"],
        "time_eager_us": performance["time_eager_us"],
        "over_kernels_us": performance["time_us"]["median"] - figures["kernels_own_us"],
    }


def row(figures: Json) -> list[object]:
    return [
        figures["candidate"],
        figures["do_bench_eager_us"],
        figures["do_bench_own_us"],
        figures["speedup_do_bench"],
        figures["speedup_eager"]["median"],
        figures["ratio"],
        figures["time_us"]["median"],
        figures["kernels_own_us"],
        figures["over_kernels_us"],
    ]


def default_artifacts() -> Path:
    cache = os.environ.get("MC_CACHE_DIR")
    if cache is not None:
        return Path(cache) / "artifacts"
    above = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return Path(above) / "musacoder/artifacts"


def main() -> int:
    parser = measured.parser("MooreEval beside do_bench and the profiler.", CANDIDATES)
    parser.add_argument("--artifacts", type=Path, default=default_artifacts())
    parser.add_argument("--one", help="measure this one here and print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(measured.case_named(arguments.one), arguments.artifacts)))
        return 0
    measurements = Measurements(arguments)
    performances = measurements.performances(measurements.cases)
    rows = []
    for case, performance in zip(measurements.cases, performances, strict=True):
        figures = measure_apart(case, arguments.artifacts)
        if figures is not None and performance is not None:
            rows.append(compared(case.name, figures, performance))
    print(table(HEADS, [row(figures) for figures in rows]))
    measured.write(arguments.out, rows)
    return 0 if len(rows) == len(measurements.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
