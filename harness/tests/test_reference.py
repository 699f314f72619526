# SPDX-License-Identifier: Apache-2.0
"""Which references can be compared with, and in which mode."""

from __future__ import annotations

import unittest

import torch

from harness.judge.compare import TOLERANCES, Comparer
from harness.judge.reference import Reference
from harness.judge.task import Task

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x):
        return {}

def get_inputs():
    return [torch.rand(64, 64)]

def get_init_inputs():
    return []
"""


class SettleMode(unittest.TestCase):
    def settle(self, forward: str) -> tuple[bool, bool]:
        """Whether it can be compared with, and whether it is in training mode then."""
        reference = Reference(Task(TASK.format(forward)), {}, 5)
        inputs = reference.draw_inputs(7, "native")
        with torch.no_grad():
            settled = reference.settle_mode(inputs, Comparer(TOLERANCES))
        return settled, reference.model.training

    def test_what_repeats_stays_in_training_mode(self) -> None:
        self.assertEqual(self.settle("x * 2"), (True, True))

    def test_sums_in_any_order_repeat(self) -> None:
        """As a device's kernels have them that add by atomics."""
        self.assertEqual(self.settle("x * (1 + 1e-7 * torch.randn_like(x))"), (True, True))

    def test_dropout_ends_in_eval_mode(self) -> None:
        self.assertEqual(self.settle("self.dropout(x)"), (True, False))

    def test_one_random_element_is_enough(self) -> None:
        self.assertFalse(self.settle("x.index_fill(0, torch.randint(64, (1,)), 0.0)")[0])
        noise = "torch.nn.functional.pad(torch.randn(1, 1), (0, 63, 0, 63))"
        self.assertFalse(self.settle(f"x + {noise}")[0])


if __name__ == "__main__":
    unittest.main()
