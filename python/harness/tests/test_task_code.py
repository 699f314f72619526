# SPDX-License-Identifier: Apache-2.0
"""Distinguishes a task's failure from a defect of ours."""

from __future__ import annotations

import unittest
from typing import Any
from unittest import mock

import torch

from harness.judge.judge import Judge
from harness.judge.reference import Reference, derive_seed
from harness.judge.shapes import Options, ShapePlanner
from harness.judge.task import Task
from harness.judge.task_code import attempt, run
from harness.worker.wire import Question, Refusal

TASK = """
import torch
N = 64
class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(size))
    def forward(self, x):
        return x * self.scale + x.mean()
def get_inputs():
    return [torch.rand(N, 48)]
def get_init_inputs():
    return [48]
"""


def open_and_begin(source: str = TASK) -> Any:
    judge = Judge()
    judge.answer(Question({"op": "open", "source": source, "options": {}}))
    return judge.answer(Question({"op": "begin", "seed": 5})).body["plan"]


class TaskFails(unittest.TestCase):
    def test_it_is_refused_with_the_stage(self) -> None:
        for where, becomes, stage in (
            ("N = 64", "N = 1 // 0", "load"),
            ("N = 64", "raise SystemExit(3)", "load"),
            ("N = 64", "def f(a, a): pass", "load"),
            ("N = 64", "N = = 64", "load"),
            ("return [48]", "raise KeyError(1)", "get_init_inputs"),
            ("return [48]", "return [48, 2]", "init"),
            ("(torch.nn.Module)", "", "init"),
            ("return [torch.rand(N, 48)]", "exit()", "get_inputs"),
            ("return x *", "return x.nothing *", "forward"),
        ):
            with self.subTest(becomes=becomes), self.assertRaises(Refusal) as caught:
                open_and_begin(TASK.replace(where, becomes))
            self.assertEqual(caught.exception.kind, "task", becomes)
            self.assertEqual(getattr(caught.exception, "mc_stage"), stage, becomes)

    def test_a_package_that_is_not_there_is_named(self) -> None:
        with self.assertRaises(Refusal) as caught:
            open_and_begin(TASK.replace("import torch", "import torch\nimport nowhere.inner"))
        message = "it needs the package nowhere, which the Python of $MC_PYTHON does not have"
        self.assertEqual(str(caught.exception), message)

    def test_values_that_cannot_be_passed_on_are_refused(self) -> None:
        for value, kind in (
            ("x.to_sparse()", "unsupported"),
            ("torch.nested.nested_tensor([x[0], x[1]])", "unsupported"),
            ("(lambda y: (y.append(y), y)[1])([x])", "task"),
        ):
            with self.subTest(value=value), self.assertRaises(Refusal) as caught:
                open_and_begin(TASK.replace("x * self.scale + x.mean()", value))
            self.assertEqual(caught.exception.kind, kind)

    def test_a_model_that_cannot_be_copied_is_judged(self) -> None:
        kept = "self.scale = torch.nn.Parameter(torch.rand(size))"
        lock = f"{kept}\n        self.lock = __import__('threading').Lock()"
        self.assertTrue(open_and_begin(TASK.replace(kept, lock))["trials"])

    def test_an_out_of_memory_error_is_passed_on(self) -> None:
        def exhausts() -> None:
            raise MemoryError

        with self.assertRaises(MemoryError):
            run("forward", exhausts)
        self.assertIsNone(attempt(run, "forward", exhausts))

    def test_a_shape_that_the_task_refuses_is_left_out(self) -> None:
        refused = TASK.replace("return x *", "assert len(x) == 64\n        return x *")
        for source, expected in ((TASK, {"native", "ragged"}), (refused, {"native"})):
            labels = {shape["label"] for shape in open_and_begin(source)["shapes"]}
            self.assertEqual(labels, expected)


class WeFail(unittest.TestCase):
    """A defect of ours at each place that tolerates a task's failure."""

    def is_not_the_tasks(self, name: str, call: Any, after: int = 0) -> None:
        """`call` raises the exception of the function of that name, from its n-th call on."""
        module, _, attribute = name.rpartition(".")
        owner: Any = __import__("importlib").import_module(module)
        real, num = getattr(owner, attribute), 0

        def broken(*args: Any, **kwargs: Any) -> Any:
            nonlocal num
            num += 1
            if num > after:
                raise AttributeError("a defect of ours")
            return real(*args, **kwargs)

        with mock.patch.object(owner, attribute, broken):
            with self.assertRaisesRegex(AttributeError, "a defect of ours"):
                call()
        self.assertGreater(num, after)

    def test_in_the_cost_of_a_shape(self) -> None:
        self.is_not_the_tasks("harness.judge.cost.state_of", open_and_begin)
        # The native shape costs too much, so the planner searches for others.
        planner = ShapePlanner(Task(TASK), Options(cost_max=10))
        self.is_not_the_tasks("harness.judge.cost.bytes_of", planner.main, after=9)

    def test_in_the_reference(self) -> None:
        self.is_not_the_tasks("harness.judge.reference.cast", open_and_begin)
        self.is_not_the_tasks("harness.judge.reference.cast_model", open_and_begin)

    def test_in_a_variant(self) -> None:
        self.is_not_the_tasks("harness.judge.reference.cast_model", open_and_begin, after=1)

    def test_in_a_distribution_and_in_special_values(self) -> None:
        for after in (0, 3):
            self.is_not_the_tasks("harness.judge.reference._lies_in", open_and_begin, after=after)

    def test_in_the_error_bound(self) -> None:
        reference = Reference(Task(TASK), {}, derive_seed(3))
        outcome = reference.run([torch.rand(4, 48)], 0)
        self.is_not_the_tasks("harness.judge.reference._to_double", lambda: outcome.error_bound)


if __name__ == "__main__":
    unittest.main()
