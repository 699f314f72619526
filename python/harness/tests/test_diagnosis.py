# SPDX-License-Identifier: Apache-2.0
"""The judge's diagnosis of wrong outputs: the operator that the candidate computes differently."""

from __future__ import annotations

import os
import resource
import signal
import time
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F

from harness.judge import forked, cost, diagnosis, patterns
from harness.judge.compare import TOLERANCES, Comparer
from harness.judge.diagnosis import Diagnoses, diagnose
from harness.judge.perturbations import perturbations_of
from harness.judge.reference import Outcome, Reference
from harness.judge.task import Task
from harness.judge.trace import Changed, Recorder, Step

torch.set_num_threads(1)  # A judge has one thread, too.

TASK = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
COMPARER = Comparer(TOLERANCES)
SQUARE = "torch.randn(24, 24)"
# The reference's text, its replacement in the candidate, and the expected diagnosis.
WRONG = (
    ("x.relu().exp()", "x.relu()", "the value after step 1 of 2 (relu"),
    ("x.exp().relu().sum(1)", "x.exp().sum(1) - x.sum(1)", ""),
    ("x.abs().sqrt().sin()", "x.abs().sin()", "step 2 of 3 (sqrt, "),
    ("x.abs().sqrt().sin()", "x.abs().sin()", "left out"),
    ("F.leaky_relu(x, 0.3) + 1", "F.relu(x) + 1", "step 1 of 2 (leaky_relu"),
    ("F.leaky_relu(x, 0.3) + 1", "F.relu(x) + 1", "replaced by relu"),
    ("F.gelu(x)", "F.gelu(x, approximate='tanh')", "approximation by tanh in place of the exact"),
    ("x.tanh() - x.sin()", "x.tanh() + x.sin()", "step 3 of 3 (sub, "),
    ("x.tanh() - x.sin()", "x.sin() - x.tanh()", "with its operands swapped"),
    ("x - x.amax(1, keepdim=True)", "x - x.amin(1, keepdim=True)", "replaced by min"),
    ("x.exp().mean(1)", "x.exp().sum(1)", "replaced by sum"),
    ("x.exp().mean(1)", "x.exp()[:, :-1].sum(1) / 24", "without the last place of the axis"),
    ("x.var(1)", "x.var(1, correction=0)", "biased variance in place of the unbiased"),
    ("torch.softmax(x, 1)", "torch.log_softmax(x, 1)", "replaced by log_softmax"),
    ("(x * 0.5).sin()", "(x * 0.7).sin()", "with 0.7 in place of 0.5"),
    ("x.relu() + 0.5", "(x + 0.5).relu()", "computed after step 2 (add)"),
    (
        "F.smooth_l1_loss(x, x.sin(), reduction='none')",
        "(x - x.sin()).abs()",
        "with beta 0 in place of 1",
    ),
    ("x.sin().triu(1)", "x.sin().triu()", "with the main diagonal"),
    (
        "torch.where(x > 0.5, x.sin(), x.cos())",
        "torch.where(x > 0.5, x.cos(), x.sin())",
        "branches exchanged",
    ),
    ("(x > 0.5).sum(1)", "(x > 0).sum(1)", "with 0 in place of 0.5"),
    ("x.round().argmax(1)", "23 - x.round().flip(1).argmax(1)", "the last of equal values"),
    ("(x.sin() + x, x.exp())", "(x, x.exp())", "Output 0 equals input 0, unchanged"),
    ("x.sin()", "torch.zeros_like(x)", "are 0: they are not written"),
)
LAYERS = (
    ("nn.Linear(24, 24)", "x @ m.weight.t()", "without m.bias (0"),
    ("nn.BatchNorm1d(24)",
     "F.batch_norm(x, m.running_mean, m.running_var, m.weight, m.bias)", "eval mode"),
    ("nn.LayerNorm(24)", "F.layer_norm(x, (24,), m.weight)", "without m.bias"),
    ("nn.LayerNorm(24)", "F.layer_norm(x, (24,), None, m.bias)", "without m.weight (1"),
    ("nn.LayerNorm(24)", "F.layer_norm(x, (24,))", "without its weight and bias"),
)  # fmt: skip


class Case:
    """A reference with one trial of it."""

    def __init__(self, forward: str, init: str = "pass", inputs: str = SQUARE) -> None:
        self.source = TASK.format(init=init, forward=forward, inputs=inputs)
        self.reference = Reference(Task(self.source), {}, 5)
        self.outcome: Outcome = self.reference.run(self.reference.draw_inputs(3, "native"), 3)

    @property
    def x(self) -> torch.Tensor:
        tensor: torch.Tensor = self.outcome.inputs[0]
        return tensor

    def diagnose(self, got: Any) -> str:
        if not COMPARER.failures(self.outcome.outputs, got, self.outcome.error_bound):
            raise AssertionError("the candidate of the test is right")
        return diagnose(self.reference, self.outcome, got, 3, COMPARER, self.source)

    def steps(self) -> list[Step]:
        recorder = Recorder(self.source, lambda step, made: None)
        self.reference.run_by(self.reference.model, self.outcome.inputs, 3, recorder)
        return recorder.trace.steps


def value_of(text: str, **names: Any) -> torch.Tensor:
    found: torch.Tensor = eval(text, {"torch": torch, "F": F, **names})
    return found


class Diagnosing(unittest.TestCase):
    def setUp(self) -> None:
        self.enterContext(torch.no_grad())

    def test_a_replaced_operator_is_named(self) -> None:
        for right, wrong, words in WRONG:
            with self.subTest(right=right, wrong=wrong):
                case = Case(f"return {right}")
                self.assertIn(words, case.diagnose(value_of(wrong, x=case.x)))

    def test_parameters_and_modes_are_named(self) -> None:
        for layer, wrong, words in LAYERS:
            with self.subTest(layer=layer, wrong=wrong):
                case = Case("return self.m(x)", f"self.m = {layer}")
                got = value_of(wrong, x=case.x, m=case.reference.model.m)
                self.assertIn(words, case.diagnose(got))

    def test_a_line_of_several_operators_is_left_out(self) -> None:
        case = Case("x = x.sin()\n        x = (x + 0.5) ** 2\n        return x.exp()")
        self.assertIn('the line "x = (x + 0.5) ** 2" left out', case.diagnose(case.x.sin().exp()))

    def test_a_line_of_several_operators_is_replaced(self) -> None:
        case = Case("x = (x + 0.5) ** 2 * 3\n        return x.exp()")
        self.assertIn('** 2 * 3" replaced by tanh', case.diagnose(case.x.tanh().exp()))
        case = Case("x = x.square().mean(1)\n        return x.exp()")
        self.assertIn("replaced by unbiased variance", case.diagnose(case.x.var(1).exp()))

    def test_the_line_of_the_task_is_quoted(self) -> None:
        case = Case("y = x.sin()\n        return y.mean(1)")
        self.assertIn('(mean, "return y.mean(1)")', case.diagnose(case.x.sin().sum(1)))

    def test_an_unrelated_output_is_explained_by_nothing(self) -> None:
        for forward in ("return x.sin().sum()", "return x.exp().sum(1)", "return x.argmax(1)"):
            case = Case(forward)
            for seed in range(3):
                noise = torch.rand(24, 24, generator=torch.Generator().manual_seed(seed)) * 30
                got = noise.to(case.outcome.outputs.dtype).reshape(-1)
                got = got[: case.outcome.outputs.numel()].reshape(case.outcome.outputs.shape)
                self.assertNotIn("equal", case.diagnose(got), forward)

    def test_the_same_output_gets_the_same_words(self) -> None:
        case = Case("return F.dropout(x, 0.5, True).sum(1)")
        got = case.outcome.outputs * 3
        self.assertEqual(case.diagnose(got), case.diagnose(got))

    def test_a_large_task_is_searched_less(self) -> None:
        runs = []
        for inputs in (SQUARE, "torch.randn(2048, 1024)"):
            case = Case("return x.sin()", inputs=inputs)
            search = diagnosis._Search(
                case.reference, case.outcome, case.outcome.outputs, 3, COMPARER, case.source
            )
            search._record()
            runs.append(search._runs_left)
        self.assertGreater(runs[0], 10 * runs[1])

    def test_each_perturbation_of_the_table_runs(self) -> None:
        # A row that does not run explains nothing, and its error would be hidden.
        forwards = (
            "x.relu()", "x + x.sin()", "x.gt(x.sin())", "x.mean(1)", "x.amax(1)", "x.max(1)[0]",
            "x.var(1)", "x.std(1)", "x.logsumexp(1)", "torch.softmax(x, 1)", "x.argmax(1)",
            "x @ x.sin()", "F.gelu(x)", "x.triu(1)", "F.mse_loss(x, x.sin())", "x.pow(2)", "2 - x",
            "F.avg_pool2d(x[None, None], 2)",
            "F.conv2d(x[None, None], x[None, None, :3, :3], padding=1)",
        )  # fmt: skip
        for forward in forwards:
            case = Case(f"return {forward}")
            steps = case.steps()
            self.assertTrue(steps, forward)
            for _, one in perturbations_of(steps[-1:]):
                with self.subTest(forward=forward, words=one.words):
                    try:
                        mode = Changed({steps[-1].index: one.change})
                        case.reference.run_by(case.reference.model, case.outcome.inputs, 3, mode)
                    except Exception as error:
                        # PyTorch itself refuses some, such as a bitwise operator of floats.
                        self.assertRegex(str(error), "^RuntimeError|^NotImplementedError")


class Candidates(unittest.TestCase):
    def test_a_candidate_has_two_tries_and_one_diagnosis(self) -> None:
        with torch.no_grad():
            case = Case("return x.relu().exp()")
            diagnoses = Diagnoses(COMPARER, case.source)
            self.assertEqual(
                self._found(diagnoses, case, case.x.relu(), range(3)), [True, False, False]
            )
            self.assertEqual(self._found(diagnoses, case, case.x.relu(), range(1)), [True])

    def test_another_shape_is_not_diagnosed(self) -> None:
        with torch.no_grad():
            case = Case("return x.relu().exp()")
            diagnoses = Diagnoses(COMPARER, case.source)
            self.assertEqual(self._found(diagnoses, case, case.x[:3], range(1)), [False])

    def _found(self, diagnoses: Diagnoses, case: Case, got: Any, indices: range) -> list[bool]:
        found = []
        for index in indices:
            trial = type("Trial", (), {"index": index, "seed": 3, "distribution": "native"})
            checks = COMPARER.failures(case.outcome.outputs, got, None)
            added = diagnoses.added(checks, trial, lambda: case.reference, case.outcome, got)
            self.assertEqual(
                [{**one, "diagnosis": ""} for one in added],
                [{**one, "diagnosis": ""} for one in checks],
            )
            found.append("diagnosis" in added[0])
        return found


NAN, INF = float("nan"), float("inf")
ODD: tuple[Callable[[torch.Tensor], Any], ...] = (
    lambda y: torch.full_like(y, NAN),
    lambda y: torch.full_like(y, INF),
    lambda y: y.masked_fill(y > 1, -INF),
    lambda y: y.masked_fill(y > 1, NAN),
    lambda y: torch.full_like(y, -0.0),
    lambda y: torch.full_like(y, 3e38),
    lambda y: torch.full_like(y, 1e-45),
    lambda y: y.double(),
    lambda y: y.half(),
    lambda y: y.int(),
    lambda y: y.bool(),
    lambda y: y.to(torch.complex64),
    lambda y: y[:0],
    lambda y: y[:3],
    lambda y: y.reshape(-1),
    lambda y: y.t(),
    lambda y: y.flip(0).t(),
    lambda y: y[:1].expand(24, 24),
    lambda y: torch.arange(47.0).as_strided((24, 24), (1, 1)),
    lambda y: torch.zeros(1).expand(1 << 40),
    lambda y: torch.zeros(1).expand(24, 24, 1 << 30),
    lambda y: (y, y),
    lambda y: {"y": y},
    lambda y: 1.5,
    lambda y: None,
)
FORWARDS = ("x.relu().exp()", "(x.exp() @ x).softmax(1)", "x.triu().cumsum(1)")


class OddOutputs(unittest.TestCase):
    def test_no_output_raises_or_takes_long(self) -> None:
        with torch.no_grad():
            for forward in FORWARDS:
                case = Case(f"return {forward}")
                for number, odd in enumerate(ODD):
                    with self.subTest(forward=forward, number=number):
                        self._try(case, odd(case.outcome.outputs + 0.5))

    def test_outputs_of_no_elements_and_of_one(self) -> None:
        with torch.no_grad():
            for forward in ("x[:0].exp()", "x.exp().sum()", "x.argmax()", "x > 0"):
                case = Case(f"return {forward}")
                for got in (torch.empty(0, 24), torch.tensor(NAN), torch.tensor(7), case.x < 0):
                    self._try(case, got)

    def _try(self, case: Case, got: Any) -> None:
        diagnoses = Diagnoses(COMPARER, case.source)
        checks = COMPARER.failures(case.outcome.outputs, got, case.outcome.error_bound)
        trial = type("Trial", (), {"index": 0, "seed": 3, "distribution": "native"})
        start = time.monotonic()
        added = diagnoses.added(checks, trial, lambda: case.reference, case.outcome, got)
        self.assertLess(time.monotonic() - start, 5.0)
        self.assertEqual([{**one, "diagnosis": ""} for one in added],
                         [{**one, "diagnosis": ""} for one in checks])  # fmt: skip
        if all(one["problem"] in ("value", "nonfinite") for one in checks) and checks:
            # A fork would hide an exception, so the diagnosis runs in this process.
            diagnose(case.reference, case.outcome, got, 3, COMPARER, case.source)

    def test_what_is_on_a_device_is_copied_to_the_host(self) -> None:
        with torch.no_grad():
            case = Case("return x.relu().exp()")
            reference, outcome = case.reference.on_cpu(), case.outcome.on_cpu()
            words = diagnose(reference, outcome, case.x.exp(), 3, COMPARER, case.source)
            self.assertIn("left out", words)

    def test_a_view_is_counted_by_what_a_copy_takes(self) -> None:
        self.assertEqual(cost.bytes_of(torch.zeros(1).expand(1 << 40)), 4 << 40)


def _crash() -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "alive"


def _sleep() -> str:
    time.sleep(60)
    return "awake"


def _spin() -> str:
    while True:
        pass


class Apart(unittest.TestCase):
    def test_a_text_comes_back(self) -> None:
        self.assertEqual(forked.text_from_fork(lambda: "words"), "words")
        self.assertEqual(len(forked.text_from_fork(lambda: "w" * 9000)), forked.TEXT_BYTES_MAX)

    def test_a_crash_only_loses_the_text(self) -> None:
        self.assertEqual(forked.text_from_fork(_crash), "")
        self.assertEqual(forked.text_from_fork(lambda: str(1 / 0)), "")

    def test_the_fork_has_a_deadline(self) -> None:
        with mock.patch.object(forked, "WALL_S", 0.2):
            start = time.monotonic()
            self.assertEqual(forked.text_from_fork(_sleep), "")
            self.assertEqual(forked.text_from_fork(_spin), "")
            self.assertLess(time.monotonic() - start, 5.0)

    def test_the_fork_has_limits_of_processor_time_and_memory(self) -> None:
        with mock.patch.object(forked, "CPU_S", 1):
            start = time.monotonic()
            self.assertEqual(forked.text_from_fork(_spin), "")
            self.assertLess(time.monotonic() - start, forked.WALL_S - 1)
        self.assertEqual(forked.text_from_fork(lambda: str(len(bytearray(2 << 30)))), "")

    def test_nothing_remains_of_the_fork(self) -> None:
        torch.default_generator.manual_seed(5)
        before, files = torch.default_generator.get_state(), os.listdir("/proc/self/fd")
        forked.text_from_fork(lambda: str(torch.rand(3)))
        self.assertTrue(torch.equal(before, torch.default_generator.get_state()))
        self.assertEqual(os.listdir("/proc/self/fd"), files)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_no_fork_is_tried_where_the_limit_leaves_no_room(self) -> None:
        limits = mock.patch.object(resource, "getrlimit", return_value=(1 << 30, 1 << 30))
        with limits, mock.patch.object(os, "fork") as fork:
            self.assertEqual(forked.text_from_fork(lambda: "words"), "")
            fork.assert_not_called()


class Places(unittest.TestCase):
    def test_sets_of_indices_have_words(self) -> None:
        cases = (
            ([4], 40, "index 4"),
            ([39], 40, "the last index (39)"),
            ([32, 33, 34, 35], 36, "indices from 32 on, of 36,"),
            ([0, 1, 2], 40, "indices below 3, of 40,"),
            ([1, 2, 9, 17], 40, ""),
        )
        for places, size, words in cases:
            self.assertEqual(patterns._set_words(places, size), words)


if __name__ == "__main__":
    unittest.main()
