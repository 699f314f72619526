# SPDX-License-Identifier: Apache-2.0
"""The judge's grades (trivial, weak, good), and their effect on the trials of candidates."""

from __future__ import annotations

import unittest
from typing import Any

import torch

from harness.judge import hygiene
from harness.judge.judge import Judge
from harness.worker.wire import Json, Question

TASK = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        return {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def plan_of(
    forward: str,
    inputs: str = "torch.rand(32, 48)",
    init: str = "pass",
    inputs_option: str = "varied",
    **others: Any,
) -> Json:
    judge = Judge()
    options = {"inputs": inputs_option, **others}
    source = TASK.format(forward=forward, inputs=inputs, init=init)
    judge.answer(Question({"op": "open", "source": source, "options": options}))
    plan: Json = judge.answer(Question({"op": "begin", "seed": 3})).body["plan"]
    plan["as_initialised"] = judge.answer(Question({"op": "grade"})).body["as_initialised"]
    return plan


class Grades(unittest.TestCase):
    def assert_grade(self, grade: str, *words: str, **task: Any) -> None:
        plan = plan_of(**task)
        self.assertEqual(plan["grade"]["grade"], grade, plan["grade"]["reasons"])
        for word in words:
            self.assertIn(word, " ".join(plan["grade"]["reasons"]))

    def test_an_output_that_depends_on_inputs_is_good(self) -> None:
        for forward in ("x * 2 + 1", "x.sum(dim=1)", "torch.softmax(x, 1)", "x.argmax(dim=1)"):
            with self.subTest(forward):
                self.assert_grade("good", forward=forward)

    def test_zero_for_all_inputs_is_trivial(self) -> None:
        constant = ("F.gelu(x.mean(1) - x.mean(1))", "x.clamp(0.0, 0.0)", "(x * 0).sum(1)")
        for forward in constant:
            with self.subTest(forward):
                self.assert_grade("trivial", "zeros", forward=forward)

    def test_a_constant_other_than_zero_is_trivial(self) -> None:
        ones = "torch.softmax(x.sum(1, keepdim=True), dim=1)"
        self.assert_grade("trivial", "a constant", forward=ones)
        self.assert_grade("trivial", "a constant", forward="torch.full_like(x, 3.5)")

    def test_a_pattern_that_is_the_same_for_all_inputs_is_trivial(self) -> None:
        pattern = "torch.arange(48.0).expand(32, 48) + 0 * x"
        self.assert_grade("trivial", "the output for other inputs", forward=pattern)

    def test_integers_and_booleans_may_be_constant(self) -> None:
        self.assert_grade("trivial", "a constant", forward="(x * x) >= 0")
        self.assert_grade("trivial", "a constant", forward="torch.full_like(x, 7).long()")

    def test_a_copy_of_an_input_is_trivial(self) -> None:
        self.assert_grade("trivial", "a copy of input[0]", forward="x.clone()")
        self.assert_grade("trivial", "a copy of input[0]", forward="x.reshape(48, 32) * 1.0")

    def test_an_answer_that_only_other_values_refute_is_weak(self) -> None:
        self.assert_grade("weak", "a copy of input[0]", forward="torch.relu(x)")

    def test_biases_that_a_norm_takes_away_are_weak(self) -> None:
        init = "self.a = nn.Linear(48, 48); self.b = nn.BatchNorm1d(48, affine=False)"
        self.assert_grade("weak", "without its biases", forward="self.b(self.a(x))", init=init)

    def test_biases_that_matter_are_good(self) -> None:
        init = "self.a = nn.Linear(48, 48)"
        self.assert_grade("good", forward="self.a(x)", init=init)

    def test_one_element_is_no_constant_of_itself(self) -> None:
        self.assert_grade("good", forward="x.mean()")

    def test_an_output_of_rounding_errors_is_trivial(self) -> None:
        init = "self.norm = nn.LayerNorm(48, elementwise_affine=False)"
        self.assert_grade("trivial", "zeros", forward="self.norm(x).mean(1)", init=init)

    def test_only_the_chosen_inputs_count(self) -> None:
        self.assert_grade("trivial", "input[0]", forward="torch.relu(x)", inputs_option="native")

    def test_inputs_of_the_verified_set_tell_a_relu_from_a_copy(self) -> None:
        self.assert_grade("weak", forward="torch.relu(x)", inputs_option="verified")

    def test_the_tasks_own_weights_are_tested(self) -> None:
        init = "self.norm = nn.GroupNorm(4, 16)"
        inputs = "torch.rand(8, 16, 6, 6)"
        plan = plan_of("self.norm(x).mean(dim=[1, 2, 3])", inputs, init)
        self.assertEqual(plan["grade"]["grade"], "good")
        self.assertIn("zeros", plan["as_initialised"])
        self.assertEqual(plan_of("x * 2")["as_initialised"], [])


class Plans(unittest.TestCase):
    def distributions(self, **options: Any) -> list[str]:
        trials = plan_of("x * 2 + 1", shapes=False, **options)["trials"]
        return [trial["distribution"] for trial in trials]

    def test_native_inputs_alone(self) -> None:
        self.assertEqual(self.distributions(inputs_option="native"), ["native"] * 5)

    def test_the_verified_set(self) -> None:
        scaled = ["native", "times_3", "times_0.01", "times_-1", "native"]
        self.assertEqual(self.distributions(inputs_option="verified"), scaled)

    def test_the_mode_is_reported(self) -> None:
        dropout = "self.drop = nn.Dropout(0.5)"
        self.assertEqual(plan_of("x * 2")["mode"], "train")
        self.assertEqual(plan_of("x * 2", mode="eval")["mode"], "eval")
        self.assertEqual(plan_of("self.drop(x)", init=dropout)["mode"], "eval")


class Precision(unittest.TestCase):
    def test_inputs_and_model_are_cast(self) -> None:
        judge = Judge()
        source = TASK.format(
            forward="self.a(x)", inputs="torch.rand(8, 48)", init="self.a = nn.Linear(48, 4)"
        )
        options = {"precision": "bf16", "shapes": False}
        judge.answer(Question({"op": "open", "source": source, "options": options}))
        judge.answer(Question({"op": "begin", "seed": 3}))
        init = judge.answer(Question({"op": "init", "shape": 0})).body
        self.assertEqual(init["precision"], "bf16")
        self.assertEqual({entry["tree"]["dtype"] for entry in init["state"]}, {"bfloat16"})
        trial = judge.answer(Question({"op": "trial", "index": 0})).body
        self.assertEqual(trial["inputs"]["items"][0]["dtype"], "bfloat16")


class Assembly(unittest.TestCase):
    def test_one_answer_has_to_pass_every_trial(self) -> None:
        found = {"native": frozenset({"input[0]"}), "negative": frozenset({"zeros"})}
        self.assertEqual(hygiene.grade(found, "native", False).grade, "weak")

    def test_no_trial_is_no_ground_for_trivial(self) -> None:
        self.assertEqual(hygiene.grade({}, "native", False).grade, "good")

    def test_samples_keep_what_is_compared_together(self) -> None:
        large = torch.rand(3 * hygiene.SAMPLE)
        self.assertEqual(hygiene.sampled([large, large * 2])[0].numel(), hygiene.SAMPLE)


if __name__ == "__main__":
    unittest.main()
