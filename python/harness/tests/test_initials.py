# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import unittest
from typing import Any

import torch

from harness.judge import initials
from harness.worker import region
from harness.worker.wire import Question, Refusal

TASK = """
import torch
rows, width = 128, 512

class Model(torch.nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.width = width

    def forward(self, x):
        return x + self.width

def get_inputs():
    return [torch.rand(rows, width)]

def get_init_inputs():
    return [width, torch.zeros(2)]
"""


def asked(source: str, **options: Any) -> list[Any]:
    answer = initials.answer(Question({"op": "initials", "source": source, "options": options}))
    (descriptor,) = answer.descriptors
    try:
        snapshot = region.Snapshot(descriptor, 1 << 20)
        found = [region.unpack(tree, snapshot) for tree in answer.body["initials"]]
    finally:
        os.close(descriptor)
    assert all(named == {} for _, named in found)
    return [positional for positional, _ in found]


class Initials(unittest.TestCase):
    def test_are_those_of_every_size_each_once(self) -> None:
        widths = [width for width, _ in asked(TASK)]
        self.assertEqual(widths[0], 512)
        self.assertGreater(len(widths), 1)
        self.assertEqual(len(set(widths)), len(widths))

    def test_begin_with_the_size_that_is_judged(self) -> None:
        widths = [width for width, _ in asked(TASK, bytes_max=1 << 11)]
        self.assertLess(widths[0], 512)
        self.assertIn(512, widths)  # For a candidate that supports only that width.

    def test_are_of_the_main_size_alone_where_no_other_is_judged(self) -> None:
        self.assertEqual([width for width, _ in asked(TASK, shapes=False)], [512])

    def test_a_size_at_which_the_task_fails_is_left_out(self) -> None:
        picky = TASK.replace("return [width,", "assert width == 2 ** 9\n    return [width,")
        self.assertEqual([width for width, _ in asked(picky)], [512])

    def test_a_task_that_fails_at_its_own_says_so(self) -> None:
        with self.assertRaisesRegex(Refusal, "ZeroDivisionError") as caught:
            asked(TASK.replace("return [width,", "return [1 // 0,"))
        self.assertEqual(caught.exception.kind, "task")

    def test_what_cannot_be_passed_on_is_unsupported(self) -> None:
        with self.assertRaisesRegex(Refusal, "get_init_inputs: a value of type object") as caught:
            asked(TASK.replace("torch.zeros(2)", "object()"))
        self.assertEqual(caught.exception.kind, "unsupported")

    def test_no_receiver_can_change_them(self) -> None:
        answer = initials.answer(Question({"op": "initials", "source": TASK, "options": {}}))
        (descriptor,) = answer.descriptors
        self.addCleanup(os.close, descriptor)
        self.assertRaises(PermissionError, os.pwrite, descriptor, b"\1", 0)
        self.assertTrue(torch.equal(asked(TASK)[0][1], torch.zeros(2)))


if __name__ == "__main__":
    unittest.main()
