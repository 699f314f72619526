# SPDX-License-Identifier: Apache-2.0
"""Removed operators, each test in its own process: no code can restore them."""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))
from harness.candidate.aten import AtenRecorder, without_free_casts  # noqa: E402
from harness.candidate.guard import OperatorGuard  # noqa: E402
from harness.candidate.process import is_moving_view  # noqa: E402

POLICY = "a-policy"
ALLOWED = json.loads((ROOT / "data/policy/musacoder.json").read_text())["operators"]


def _composite(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


@functools.cache
def build_guard() -> str:
    """The guard's library. Its compilation takes a minute, so each run does it once."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    library = f"{folder}/guard.so"
    includes = [f"-I{path}" for path in cpp_extension.include_paths()]
    links = [f"-L{path}" for path in cpp_extension.library_paths()] + ["-ltorch_cpu", "-lc10"]
    sources = [str(ROOT / "device/facade/runtime" / name) for name in ("guard.cc", "record.cc")]
    options = ["-std=c++17", "-fPIC", "-shared", "-w"]
    subprocess.run(["g++", *options, *includes, *sources, "-o", library, *links], check=True)
    return library


def _guarded(shim: str, results: Any) -> None:
    library = ctypes.PyDLL(shim, mode=ctypes.RTLD_GLOBAL)
    guard, recorder = OperatorGuard(library), AtenRecorder(library)
    x = torch.arange(6.0).reshape(2, 3)
    scripted = torch.jit.script(_composite)
    own = torch.library.Library("test_guard", "DEF")
    own.define("same(Tensor x) -> Tensor")
    own.define("plus(Tensor x) -> Tensor")
    own.impl("same", torch.clone, "CompositeExplicitAutograd")
    own.impl("plus", lambda x: x + 1, "CPU")
    for _ in range(2):  # A repetition is not an error and restores nothing.
        guard.remove("CPU", ALLOWED, POLICY)
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    calls: dict[str, Callable[[], object]] = {
        "empty_like": lambda: torch.empty_like(x),
        "tensor": lambda: torch.tensor([[1.0, 2.0]]),
        "randn": lambda: torch.randn(2),
        "full": lambda: torch.full((2,), 3.0),
        "contiguous": lambda: x.t().contiguous(),
        "half": lambda: x.half(),
        "item": lambda: x[0, 1].item(),
        "add": lambda: x + 1,
        "add_": lambda: x.add_(1),
        "linear": lambda: torch.nn.functional.linear(x, x),
        "autograd": lambda: x.detach().requires_grad_() * 2,
        "script": lambda: scripted(x),
        "vmap": lambda: torch.vmap(_composite)(x),
        "redispatch": lambda: torch.ops.aten.mm.default.redispatch(cpu, x, x.t()),
        "sparse": lambda: torch.tensor([0.0, 1.0]).to_sparse(),
        "own": lambda: torch.ops.test_guard.same(x),
        "own that computes": lambda: torch.ops.test_guard.plus(x),
    }
    errors = {}
    for name, call in calls.items():
        try:
            call()
            errors[name] = ""
        except RuntimeError as error:
            errors[name] = str(error)
    recorder.start()
    calls["empty_like"]()
    calls["own"]()
    for name in ("linear", "add_"):
        try:
            calls[name]()
        except RuntimeError:
            pass
    x.half(), x.int(), x.double(), torch.arange(3).int()
    results.put((errors, guard.refused(), recorder.stop()))


class _Case:
    """A constructor that computes results for forward, and the operators that count against it."""

    def __init__(
        self,
        make: Callable[[dict[str, torch.Tensor]], object],
        found: set[str],
        reference: dict[str, int] | None = None,
    ) -> None:
        self.make, self.found, self.reference = make, found, reference or {}


def _fold(given: dict[str, torch.Tensor]) -> object:
    given["kept"] = given["w"] * given["scale"]
    return None


def _repack(given: dict[str, torch.Tensor]) -> object:
    w = given["w"]
    padded = torch.zeros(40, 40)
    padded[:32, :32].copy_(w)
    given["kept"] = padded.half()
    return [
        torch.cat([w, w.t()]).contiguous(),
        torch.nn.functional.pad(w, (0, 3)),
        w.view(4, 8, 32).permute(2, 0, 1).contiguous().flip(0),
        torch.stack([w, w])[:, 1:].clone(),
        w[torch.arange(31, -1, -1)],
    ]


def _init(given: dict[str, torch.Tensor]) -> object:
    made = torch.nn.Parameter(torch.randn(32, 32) * 0.02)
    torch.nn.init.kaiming_uniform_(given["w"])
    return made


def _overwritten(given: dict[str, torch.Tensor]) -> object:
    made = torch.nn.Parameter(torch.randn(32, 32) * 0.02)
    made.detach().copy_(given["w"])  # The process does so with the reference's parameters.
    return made


def _table(_: dict[str, torch.Tensor]) -> object:
    return torch.arange(64.0).sigmoid_().half().reshape(8, 8)


def _to_numbers(given: dict[str, torch.Tensor]) -> object:
    return torch.tensor(torch.sin(given["w"]).tolist())


def _in_pieces(given: dict[str, torch.Tensor]) -> object:
    made = torch.empty(32)
    for start in range(0, 32, 16):
        made[start : start + 16].copy_(given["scale"][start : start + 16] * 2)
    return made


def _frequencies(_: dict[str, torch.Tensor]) -> object:
    return 1.0 / 10000 ** (torch.arange(0, 64, dtype=torch.float32) / 64)


def _truncated(given: dict[str, torch.Tensor]) -> object:
    torch.nn.init.trunc_normal_(given["w"])
    given["w"].copy_(torch.zeros(32, 32))
    return None


def _scalars(given: dict[str, torch.Tensor]) -> object:
    offsets = torch.arange(64) * 3
    return [torch.tensor(64.0).sqrt(), offsets, (given["w"] > 0), given["w"].sum()]


_MM = {"mm.[32,32][32,32]": 1}
_CASES = {
    "fold": _Case(_fold, {"mul"}),
    "fold into a copy": _Case(lambda given: given["w"].clone().mul_(2).t().contiguous(), {"mul"}),
    "repack": _Case(_repack, set(), {"cast float16": 1}),
    "repack in another type": _Case(_repack, set()),
    "repack as the task rounds": _Case(
        _repack, {"cast float32 to float16"}, {"cast float32 to float16": 1}
    ),
    "to numbers": _Case(_to_numbers, {"sin"}),
    "in pieces": _Case(_in_pieces, {"mul"}),
    "frequencies": _Case(
        _frequencies,
        set(),
        {"div.Tensor[64]": 1, "pow.Scalar[64]": 1, "reciprocal.[64]": 1, "mul.Tensor[64]": 1},
    ),
    "truncated draw that is overwritten": _Case(_truncated, set()),
    "bytes of integers": _Case(lambda _: torch.arange(99).byte(), {"cast int64 to uint8"}),
    "bytes of integers of the reference": _Case(
        lambda _: torch.arange(99).byte(), set(), {"cast int64 to uint8": 1}
    ),
    "shorter indices, and more exact numbers": _Case(
        lambda given: [torch.arange(99).int(), given["w"].double()], set()
    ),
    "init like the reference's": _Case(_init, set(), {"mul.Tensor[32,32]": 1}),
    "init of other shapes than the reference's": _Case(_init, {"mul"}, {"mul.Tensor[64]": 1}),
    "init by more than the reference's": _Case(_init, {"mul"}),
    "overwritten": _Case(_overwritten, set()),
    "table": _Case(_table, {"sigmoid"}),
    "scalars": _Case(_scalars, set()),
    "gone": _Case(lambda given: (given["w"] + 1).exp() is None, {"add", "exp"}),
    "product": _Case(lambda given: (given["w"] @ given["w"]) is None, {"mm"}),
    "product of the reference": _Case(lambda given: given["w"] @ given["w"], set(), _MM),
}


def _constructed(shim: str, name: str, results: Any) -> None:
    recorder = AtenRecorder(ctypes.PyDLL(shim, mode=ctypes.RTLD_GLOBAL))
    policy = json.loads((ROOT / "data/policy/musacoder.json").read_text())
    given = {"w": torch.randn(32, 32), "scale": torch.rand(32)}
    torch.set_grad_enabled(False)
    recorder.watch_construction(policy["operators"] + policy["init_operators"])
    case = _CASES[name]
    kept = case.make(given)
    computed = recorder.end_build(case.reference)
    results.put(sorted({*computed, *recorder.computed()}))
    del kept


class Construction(unittest.TestCase):
    def test_pytorchs_computations_count_even_if_dropped(self) -> None:
        context = multiprocessing.get_context("fork")
        shim = build_guard()
        for name, case in _CASES.items():
            results = context.Queue()
            process = context.Process(target=_constructed, args=(shim, name, results))
            process.start()
            self.assertEqual(set(results.get(timeout=120)), case.found, name)
            process.join()


class Casts(unittest.TestCase):
    def test_casts_that_change_values_are_named_but_those_of_the_tasks_own_kind(self) -> None:
        reference = {
            "cast float16": 1, "cast float32 to int64": 1, "cast float32 to bfloat16": 1,
        }  # fmt: skip
        table = {
            "cast Float Half": None,
            "cast Float Long": None,
            "cast Float Int": "cast float32 to int32",
            "cast Float BFloat16": "cast float32 to bfloat16",
            "cast Double BFloat16": None,
            "cast ComplexFloat Half": "cast complex64 to float16",
        }
        for call, name in table.items():
            found = without_free_casts({"aten::copy_": 2, call: 1}, reference)
            self.assertEqual(found, {"aten::copy_": 2, **({name: 1} if name else {})}, call)


class Views(unittest.TestCase):
    def test_an_output_in_an_inputs_memory_or_in_another_order_is_moved(self) -> None:
        x = torch.arange(24.0).reshape(4, 6)
        self.assertTrue(is_moving_view(x[1:], [x]))
        self.assertTrue(is_moving_view(x.clone().t(), [x]))
        self.assertFalse(is_moving_view(x.clone()[1:], [x]))


class Guard(unittest.TestCase):
    errors: dict[str, str]
    refused: list[dict[str, Any]]
    recorded: dict[str, int]

    @classmethod
    def setUpClass(cls) -> None:
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        process = context.Process(target=_guarded, args=(build_guard(), results))
        process.start()
        cls.errors, cls.refused, cls.recorded = results.get(timeout=120)
        process.join()

    def test_memory_and_views_stay(self) -> None:
        for name in ("empty_like", "tensor", "randn", "full", "contiguous", "half", "item"):
            self.assertEqual(self.errors[name], "", name)

    def test_an_own_operator_counts_as_its_parts(self) -> None:
        self.assertEqual(self.errors["own"], "")
        self.assertIn("aten::add", self.errors["own that computes"])
        self.assertIn("aten::clone", self.recorded)
        self.assertNotIn("test_guard::same", self.recorded)

    def test_computing_operators_are_refused_on_every_path(self) -> None:
        for name in ("add", "add_", "linear", "autograd", "script", "vmap", "redispatch", "sparse"):
            message = f"is not available to a candidate (policy {POLICY})"
            self.assertIn(message, self.errors[name], name)

    def test_refused_operators_are_recorded(self) -> None:
        counts = {call["name"]: call["count"] for call in self.refused}
        self.assertEqual(counts["aten::mm"], 3)
        self.assertEqual(counts["aten::add_.Tensor"], 2)

    def test_casts_that_change_values_are_recorded(self) -> None:
        casts = {name for name in self.recorded if name.startswith("cast ")}
        self.assertEqual(casts, {"cast Float Half", "cast Float Int"})

    def test_refused_operators_did_not_run(self) -> None:
        self.assertIn("aten::empty_like", self.recorded)
        for name in ("aten::linear", "aten::mm", "aten::add_"):
            self.assertNotIn(name, self.recorded)


if __name__ == "__main__":
    unittest.main()
