# SPDX-License-Identifier: Apache-2.0
"""The gate's reasons to reject bad tasks."""

from __future__ import annotations

import unittest

import torch

from harness.forge.gate import complaints, complaints_of_other_values, passes_unit_test
from harness.judge.judge import Judge
from harness.judge.task import Task
from harness.worker.wire import Question

TASK = """
import torch
import torch.nn as nn

B = 4
N = 96

class Model(nn.Module):
    def forward(self, x, y):
        return {}

def get_inputs():
    return [torch.randn(B, N), torch.randn(B, N)]

def get_init_inputs():
    return []
"""


def said_of(expression: str) -> list[str]:
    judge = Judge()
    source = TASK.format(expression)
    judge.answer(Question({"op": "open", "source": source, "options": {"specials": False}}))
    judge.answer(Question({"op": "begin", "seed": 3}))
    with torch.no_grad():
        return complaints(judge, None) or complaints_of_other_values(judge)


class GateTest(unittest.TestCase):
    def test_a_plain_task_passes(self) -> None:
        self.assertEqual(said_of("torch.relu(x) * y + x"), [])

    def test_large_values_behind_which_rounding_grows_are_found(self) -> None:
        # A sum that cancels to less than 1 has an error of 1e-4 only if its terms are large.
        self.assertEqual(
            said_of("torch.exp(-((x * y + x.flip(1) * y.roll(1, 1)) ** 2))"),
            ["badly conditioned: large"],
        )

    def test_native_values_are_reported_first(self) -> None:
        self.assertIn("badly conditioned", said_of("(x + 4096 * y) - 4096 * y + 0 * x"))


class UnitTest(unittest.TestCase):
    @staticmethod
    def passes(expression: str, x: list[float], y: list[float], z: list[float]) -> bool:
        def array(values: list[float]) -> dict[str, object]:
            return {"shape": [1, 2], "values": values, "dtype": "float32"}

        test = {"sizes": {"B": 1, "N": 2}, "inputs": [array(x), array(y)], "parameters": [],
                "outputs": [array(z)], "tolerance": 1e-4}  # fmt: skip
        with torch.no_grad():
            return passes_unit_test(Task(TASK.format(expression)), test)

    def test_the_outputs_are_those_of_the_reference(self) -> None:
        self.assertTrue(self.passes("x * y", [1, 2], [3, 4], [3, 8]))
        self.assertFalse(self.passes("x * y", [1, 2], [3, 4], [3, 8.01]))

    def test_inputs_that_lose_too_much_in_the_tasks_own_type_are_no_test(self) -> None:
        self.assertTrue(self.passes("(x + y) - y", [0.25, 0.5], [1, 1], [0.25, 0.5]))
        self.assertFalse(self.passes("(x + y) - y", [0.1, 0.3], [4096, 4096], [0.1, 0.3]))


if __name__ == "__main__":
    unittest.main()
