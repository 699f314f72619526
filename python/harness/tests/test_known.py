# SPDX-License-Identifier: Apache-2.0
"""One judge's facts about a task are valid for other judges of it."""

from __future__ import annotations

import json
import unittest
from typing import Any
from unittest import mock

from harness.judge.judge import Judge
from harness.judge.reference import Reference
from harness.worker.wire import Json, Question

TASK = """
import torch
import torch.nn as nn
BATCH = 16
WIDTH = 48
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 8)
        self.norm = nn.BatchNorm1d(8)
    def forward(self, x):
        return {forward}
def get_inputs():
    return [torch.rand(BATCH, WIDTH)]
def get_init_inputs():
    return [WIDTH]
"""
FORWARDS = (
    "torch.relu(x) + 1",
    "self.norm(self.layer(x))",
    "torch.nn.functional.dropout(self.layer(x), training=self.training)",
    "x.argmax(1)",
    "x * 0",
    "torch.log(x)",
)


def began(source: str, seed: int, known: str = "") -> tuple[Judge, Json]:
    judge = Judge()
    options: Json = {}
    judge.answer(Question({"op": "open", "source": source, "options": options, "known": known}))
    return judge, judge.answer(Question({"op": "begin", "seed": seed})).body


def first_trial(judge: Judge) -> Any:
    return judge.answer(Question({"op": "trial", "index": 0})).body["inputs"]


class Known(unittest.TestCase):
    def test_plan_and_trials_are_those_of_a_judge_that_found_it_out_itself(self) -> None:
        for forward in FORWARDS:
            source = TASK.format(forward=forward)
            _, before = began(source, seed=1)
            for seed in (1, 2):
                with self.subTest(forward, seed=seed):
                    alone, own = began(source, seed)
                    informed, second = began(source, seed, before["known"])
                    self.assertEqual(own["plan"], second["plan"])
                    self.assertEqual(first_trial(alone), first_trial(informed))
                    found, held = json.loads(own["known"]), json.loads(second["known"])
                    held["usable"] = {name: held["usable"][name] for name in found["usable"]}
                    held["passing"] = {name: held["passing"][name] for name in found["passing"]}
                    self.assertEqual(found, held)

    def test_the_reference_does_not_run_for_what_is_known(self) -> None:
        source = TASK.format(forward="torch.relu(x) + 1")
        _, before = began(source, seed=1)
        with mock.patch.object(Reference, "run", side_effect=AssertionError("it ran")):
            _, second = began(source, 1, before["known"])
        self.assertEqual(second["plan"], before["plan"])
        self.assertEqual(second["known"], before["known"])


if __name__ == "__main__":
    unittest.main()
