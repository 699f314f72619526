# SPDX-License-Identifier: Apache-2.0
"""Operators that were taken away, in a process of its own: nothing brings them back."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from harness.candidate.aten import AtenRecorder  # noqa: E402
from harness.candidate.guard import OperatorGuard  # noqa: E402

POLICY = "a-policy"
ALLOWED = json.loads((ROOT / "policy/musacoder.json").read_text())["operators"]


def _composite(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


def build_guard(folder: str) -> str:
    library = f"{folder}/guard.so"
    includes = [f"-I{path}" for path in [ROOT / "emu", *cpp_extension.include_paths()]]
    links = [f"-L{path}" for path in cpp_extension.library_paths()] + ["-ltorch_cpu", "-lc10"]
    sources = [str(ROOT / "emu/torch" / name) for name in ("shim_guard.cc", "shim_record.cc")]
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
    for _ in range(2):  # Again is no error, and brings nothing back.
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
    said = {}
    for name, call in calls.items():
        try:
            call()
            said[name] = ""
        except RuntimeError as error:
            said[name] = str(error)
    recorder.start()
    calls["empty_like"]()
    calls["own"]()
    for name in ("linear", "add_"):
        try:
            calls[name]()
        except RuntimeError:
            pass
    results.put((said, guard.refused(), recorder.stop()))


class _Case:
    """How a constructor makes what forward uses, and the operators that it is charged with."""

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


def _scalars(given: dict[str, torch.Tensor]) -> object:
    offsets = torch.arange(64) * 3
    return [torch.tensor(64.0).sqrt(), offsets, (given["w"] > 0), given["w"].sum()]


_CASES = {
    "fold": _Case(_fold, {"mul"}),
    "fold into a copy": _Case(lambda given: given["w"].clone().mul_(2).t().contiguous(), {"mul"}),
    "repack": _Case(_repack, set()),
    "init like the reference's": _Case(_init, set(), {"mul": 1}),
    "init by more than the reference's": _Case(_init, {"mul"}),
    "overwritten": _Case(_overwritten, set()),
    "table": _Case(_table, {"sigmoid"}),
    "scalars": _Case(_scalars, set()),
    "gone": _Case(lambda given: (given["w"] + 1).exp() is None, set()),
    "product": _Case(lambda given: (given["w"] @ given["w"]) is None, {"mm"}),
    "product of the reference": _Case(lambda given: given["w"] @ given["w"], set(), {"mm": 1}),
}


def _constructed(shim: str, name: str, results: Any) -> None:
    recorder = AtenRecorder(ctypes.PyDLL(shim, mode=ctypes.RTLD_GLOBAL))
    policy = json.loads((ROOT / "policy/musacoder.json").read_text())
    given = {"w": torch.randn(32, 32), "scale": torch.rand(32)}
    torch.set_grad_enabled(False)
    recorder.watch_construction(policy["operators"] + policy["init_operators"])
    case = _CASES[name]
    kept = case.make(given)
    products = recorder.end_build(case.reference)
    results.put(sorted({*products, *recorder.computed()}))
    del kept


class Construction(unittest.TestCase):
    def test_what_pytorch_computed_and_forward_could_use_is_found(self) -> None:
        context = multiprocessing.get_context("fork")
        with tempfile.TemporaryDirectory() as folder:
            shim = build_guard(folder)
            for name, case in _CASES.items():
                results = context.Queue()
                process = context.Process(target=_constructed, args=(shim, name, results))
                process.start()
                self.assertEqual(set(results.get(timeout=120)), case.found, name)
                process.join()


class Guard(unittest.TestCase):
    said: dict[str, str]
    refused: list[dict[str, Any]]
    recorded: dict[str, int]

    @classmethod
    def setUpClass(cls) -> None:
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        with tempfile.TemporaryDirectory() as folder:
            process = context.Process(target=_guarded, args=(build_guard(folder), results))
            process.start()
            cls.said, cls.refused, cls.recorded = results.get(timeout=120)
            process.join()

    def test_memory_and_views_stay(self) -> None:
        for name in ("empty_like", "tensor", "randn", "full", "contiguous", "half", "item"):
            self.assertEqual(self.said[name], "", name)

    def test_an_operator_that_came_later_is_what_it_is_made_of(self) -> None:
        self.assertEqual(self.said["own"], "")
        self.assertIn("aten::add", self.said["own that computes"])
        self.assertIn("aten::clone", self.recorded)
        self.assertNotIn("test_guard::same", self.recorded)

    def test_what_computes_is_refused_by_every_way(self) -> None:
        for name in ("add", "add_", "linear", "autograd", "script", "vmap", "redispatch", "sparse"):
            message = f"is not available to a candidate (policy {POLICY})"
            self.assertIn(message, self.said[name], name)

    def test_what_was_refused_is_noted(self) -> None:
        counts = {call["name"]: call["count"] for call in self.refused}
        self.assertEqual(counts["aten::mm"], 3)
        self.assertEqual(counts["aten::add_.Tensor"], 2)

    def test_what_was_refused_did_not_run(self) -> None:
        self.assertIn("aten::empty_like", self.recorded)
        for name in ("aten::linear", "aten::mm", "aten::add_"):
            self.assertNotIn(name, self.recorded)


if __name__ == "__main__":
    unittest.main()
