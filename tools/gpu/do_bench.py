# SPDX-License-Identifier: Apache-2.0
"""MooreEval's figures beside those of triton.testing.do_bench.

    python3 tools/gpu/do_bench.py [--artifacts DIR] [--out FILE] [CANDIDATE ...]

MooreEval measures first. Then two more processes, one after the other, time the eager Model and
ModelNew of one candidate after the other, with TF32 off and inputs on the device, of the shapes
that MooreEval times too: the task's own. do_bench puts a pair of events around each call behind a
flush of the L2, so a short call's launch is in its figure.

The two speed-ups agree where their ratio is no further from 1 than do_bench's noise and half the
width of MooreEval's interval together. The noise of a model is how far apart the quantiles 0.2 and
0.8 of its calls are, as a share of the median, or copies of its inputs, if that is more: where in
memory they lie may matter. That of a speed-up is both models' added in quadrature, or how far apart
the two processes are, if that is more.

do_bench's flush writes zeros, which the call has to write back before it can use the cache. `clean`
is do_bench's speed-up with a flush that reads as much again afterwards, so that nothing is left to
be written back.

What MooreEval compiled is loaded from its cache where it is there, and built by PyTorch's
load_inline else. This script trusts the candidates, so it is no verifier.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import measured
from figures import half_width, table
from measured import ROOT, Json, case_named, cases_named

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
    "clean",
    "noise %",
    "agree",
    "its eager us",
    "own us",
    "CUPTI us",
)
COPIES = 3
COPIES_BYTES_MAX = 12 << 30
REP_MS = 250
TIMEOUT_S = 600  # A candidate.


# ---- In a process of their own ------------------------------------------------------------------


def measure_here(names: Sequence[str], artifacts: Path) -> None:
    """Prints a line of JSON for each candidate, as soon as it is measured."""
    import torch

    use_artifacts(artifacts)
    for name in names:
        with contextlib.redirect_stdout(sys.stderr):  # For what candidates print.
            figures = measured_or_error(name)
        print(json.dumps({"candidate": name, **figures}), flush=True)
        gc.collect()
        torch.cuda.empty_cache()


def measured_or_error(name: str) -> Json:
    try:
        return measure(name)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def measure(name: str) -> Json:
    """Microseconds a call of both models, with both flushes, and the noise."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    case = case_named(name)
    task = module_of(task_source(case.task), "task")
    candidate = module_of(case.response, "candidate")
    torch.manual_seed(0)
    inputs = on_device(list(task.get_inputs()))
    eager = task.Model(*task.get_init_inputs()).cuda()
    own = candidate.ModelNew(*task.get_init_inputs()).cuda()
    own.load_state_dict(eager.state_dict(), strict=False)
    figures: Json = {}
    with torch.no_grad():
        copies = copies_of(inputs)
        for arm, model in (("eager", eager), ("own", own)):
            time_us, noise = do_bench_us(model, copies)
            figures[f"do_bench_{arm}_us"] = time_us
            figures[f"do_bench_{arm}_noise"] = noise
            with clean_flush():
                figures[f"do_bench_clean_{arm}_us"], _ = do_bench_us(model, copies)
    return figures


def do_bench_us(model: Callable[..., object], copies: Sequence[list[Any]]) -> tuple[float, float]:
    """The median over copies of the inputs, and the noise (above)."""
    from triton.testing import do_bench  # type: ignore[import-untyped]

    found = [
        do_bench(lambda: model(*inputs), rep=REP_MS, quantiles=[0.5, 0.2, 0.8]) for inputs in copies
    ]
    middle, noise = with_noise(found)
    return 1e3 * middle, noise


def with_noise(found: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The median, and how far calls or copies are apart as a share of it.

    `found` has the quantiles 0.5, 0.2 and 0.8 of the calls on each copy.
    """
    middles = [middle for middle, _, _ in found]
    middle = statistics.median(middles)
    apart = [high - low for _, low, high in found] + [max(middles) - min(middles)]
    return middle, max(apart) / middle


@contextlib.contextmanager
def clean_flush() -> Iterator[None]:
    """Has do_bench's flush read, too, so that it leaves no lines to be written back."""
    import torch
    from triton.runtime import driver  # type: ignore[import-untyped]

    active = driver.active
    flush = active.clear_cache
    other = torch.zeros_like(active.get_empty_cache_for_benchmark())

    def flush_and_read(cache: torch.Tensor) -> None:
        flush(cache)
        other.max()

    active.clear_cache = flush_and_read
    try:
        yield
    finally:
        del active.clear_cache


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


def copies_of(inputs: list[Any]) -> list[list[Any]]:
    """These inputs and, as far as memory allows, copies of them elsewhere."""
    nbytes = sum(tensor.nbytes for tensor in tensors_in(inputs))
    return [inputs, *(copy.deepcopy(inputs) for _ in range(num_copies(nbytes) - 1))]


def num_copies(nbytes: int) -> int:
    return max(1, min(COPIES, COPIES_BYTES_MAX // max(1, nbytes)))


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


def measure_apart(names: Sequence[str], artifacts: Path) -> dict[str, Json]:
    """By candidate, what another process found in time; and a line for each error."""
    command = [sys.executable, __file__, "--here", "--artifacts", str(artifacts), *names]
    with tempfile.TemporaryFile("w+") as output:
        try:
            done = subprocess.run(command, stdout=output, timeout=TIMEOUT_S * len(names))
            ending = f"exit code {done.returncode}"
        except subprocess.TimeoutExpired as error:
            ending = f"over {error.timeout:.0f} s"
        output.seek(0)
        lines = [json.loads(line) for line in output if line.startswith('{"candidate":')]
    found = {line["candidate"]: line for line in lines}
    for name in names:
        if name not in found:
            print(f"{name}: not measured by do_bench: {ending}")
        elif "error" in found[name]:
            print(f"{name}: not measured by do_bench: {found[name]['error'][-1000:]}")
    return {name: figures for name, figures in found.items() if "error" not in figures}


def speedup_of(figures: Json) -> float:
    return float(figures["do_bench_eager_us"] / figures["do_bench_own_us"])


def both(first: Json, second: Json) -> Json:
    """The means of two processes' figures; the noise is within a process or between them."""
    mean: Json = {
        key: (value + second[key]) / 2 for key, value in first.items() if key != "candidate"
    }
    within = math.hypot(mean["do_bench_eager_noise"], mean["do_bench_own_noise"])
    between = abs(speedup_of(first) / speedup_of(second) - 1)
    return {"candidate": first["candidate"], **mean, "noise": max(within, between)}


def compared(figures: Json, performance: Json) -> Json:
    """Both views of one candidate; `ratio` is MooreEval's speed-up over do_bench's."""
    speedup = speedup_of(figures)
    ratio = performance["speedup_eager"]["median"] / speedup
    noise = figures["noise"]
    return {
        **figures,
        "speedup_do_bench": speedup,
        "speedup_clean": figures["do_bench_clean_eager_us"] / figures["do_bench_clean_own_us"],
        "speedup_eager": performance["speedup_eager"],
        "ratio": ratio,
        "agree": abs(ratio - 1) <= noise + half_width(performance["speedup_eager"]),
        "time_us": performance["time_us"],
        "time_eager_us": performance["time_eager_us"],
        "kernels_us": sum(kernel["time_us"] for kernel in performance["kernels"]),
    }


def row(figures: Json) -> list[object]:
    return [
        figures["candidate"],
        figures["do_bench_eager_us"],
        figures["do_bench_own_us"],
        figures["speedup_do_bench"],
        figures["speedup_eager"]["median"],
        figures["ratio"],
        figures["speedup_clean"],
        100 * figures["noise"],
        "yes" if figures["agree"] else "no",
        figures["time_eager_us"]["median"],
        figures["time_us"]["median"],
        figures["kernels_us"],
    ]


def default_artifacts() -> Path:
    cache = os.environ.get("MC_CACHE_DIR")
    if cache is not None:
        return Path(cache) / "artifacts"
    above = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return Path(above) / "musacoder/artifacts"


def main() -> int:
    parser = measured.parser("MooreEval beside do_bench.", CANDIDATES)
    parser.add_argument("--artifacts", type=Path, default=default_artifacts())
    parser.add_argument("--here", action="store_true", help="measure here, and print only JSON")
    arguments = parser.parse_args()
    names: list[str] = arguments.candidates
    if arguments.here:
        measure_here(names, arguments.artifacts)
        return 0
    performances = measured.performances(arguments, cases_named(parser, names))
    first, second = (measure_apart(names, arguments.artifacts) for _ in range(2))
    rows = [
        compared(both(first[name], second[name]), performance)
        for name, performance in zip(names, performances, strict=True)
        if performance is not None and name in first and name in second
    ]
    print(table(HEADS, [row(figures) for figures in rows]))
    measured.write(arguments.out, rows)
    return 0 if len(rows) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
