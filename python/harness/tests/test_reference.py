# SPDX-License-Identifier: Apache-2.0
"""The references that repeat, and so can be judged, and their mode."""

from __future__ import annotations

import unittest

import torch

from harness.judge import distributions
from harness.judge.compare import TOLERANCES, Comparer
from harness.judge.reference import Outcome, Reference, buffer_failures
from harness.judge.task import Task
from harness.worker.region import tensors_of

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
        """Two facts: the reference repeats; it is then in training mode."""
        reference = Reference(Task(TASK.format(forward)), {}, 5)
        inputs = reference.draw_inputs(7, "native")
        with torch.no_grad():
            settled = reference.settle_mode(inputs, Comparer(TOLERANCES))
        return settled, reference.model.training

    def test_a_deterministic_reference_stays_in_training_mode(self) -> None:
        self.assertEqual(self.settle("x * 2"), (True, True))

    def test_sums_in_any_order_repeat(self) -> None:
        """Kernels that add by atomics sum in any order."""
        self.assertEqual(self.settle("x * (1 + 1e-7 * torch.randn_like(x))"), (True, True))

    def test_dropout_ends_in_eval_mode(self) -> None:
        self.assertEqual(self.settle("self.dropout(x)"), (True, False))

    def test_one_random_element_is_enough(self) -> None:
        self.assertFalse(self.settle("x.index_fill(0, torch.randint(64, (1,)), 0.0)")[0])
        noise = "torch.nn.functional.pad(torch.randn(1, 1), (0, 63, 0, 63))"
        self.assertFalse(self.settle(f"x + {noise}")[0])


class Outcomes(unittest.TestCase):
    """Outcomes keep no copies, for which large tasks leave no memory."""

    def run_on(self, forward: str) -> tuple[Reference, torch.Tensor, Outcome]:
        reference = Reference(Task(TASK.format(forward)), {}, 5)
        given = reference.draw_inputs(7, "native")
        kept = [given[0].clone()]
        with torch.no_grad():
            outcome = reference.run_on(given, kept, lambda: reference.draw_inputs(7, "native"), 1)
        return reference, given[0], outcome

    def test_inputs_are_drawn_again_where_they_are_asked_for(self) -> None:
        _, given, outcome = self.run_on("x * 2")
        self.assertEqual(outcome.left, {})
        self.assertIsNot(outcome.inputs[0], given)
        self.assertTrue(torch.equal(outcome.inputs[0], given))

    def test_an_input_that_was_written_is_known_with_what_is_left_in_it(self) -> None:
        _, given, outcome = self.run_on("x.mul_(2)")
        self.assertTrue(outcome.in_place)
        self.assertTrue(torch.equal(outcome.left[0], 2 * outcome.inputs[0]))
        given.zero_()
        self.assertTrue(torch.equal(outcome.outputs, 2 * outcome.inputs[0]))

    def test_an_output_has_memory_of_its_own(self) -> None:
        for forward in ("x", "x[0]", "x.t()", "self.dropout.weight", "(lambda y: (y, y))(x + 1)"):
            with self.subTest(forward):
                source = TASK.format(forward).replace("Dropout(0.5)", "Linear(64, 64)")
                reference = Reference(Task(source), {}, 5)
                with torch.no_grad():
                    outcome = reference.run(reference.draw_inputs(7, "native"), 1)
                outputs = tensors_of(outcome.outputs)
                own = [*reference.model.parameters(), *tensors_of(outcome.inputs)]
                storages = [one.untyped_storage().data_ptr() for one in [*outputs, *own]]
                self.assertEqual(len(set(storages)), len(storages))


BATCH_NORM = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for _ in range(6):
            layers += [torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)

def get_inputs():
    return [torch.randn(2, 64)]

def get_init_inputs():
    return []
"""


class Statistics(unittest.TestCase):
    """Batch norm over two rows amplifies the rounding of the layers before."""

    def test_are_as_far_off_as_another_order_of_sums_makes_them(self) -> None:
        reference, comparer = Reference(Task(BATCH_NORM), {}, 2), Comparer(TOLERANCES)
        with torch.no_grad():
            outcome = reference.run(reference.draw_inputs(7, "native"), 1)
            failed = []
            for name in [name for name in outcome.buffers if name.endswith("running_mean")]:
                expected, error_bound = outcome.buffers[name], outcome.error_bounds.buffers[name]
                failed += comparer.failures(expected, expected + 2 * error_bound, None)
                self.assertEqual(
                    buffer_failures(outcome, name, expected + 2 * error_bound, comparer), []
                )
                self.assertTrue(buffer_failures(outcome, name, expected + 0.01, comparer))
            self.assertTrue(failed, "without the error_bound")

    def test_say_nothing_where_they_are_in_too_much_error_bound_but_are_never_left_alone(
        self,
    ) -> None:
        reference = Reference(Task(BATCH_NORM.replace("range(6)", "range(24)")), {}, 2)
        comparer = Comparer(TOLERANCES)
        with torch.no_grad():
            outcome = reference.run(reference.draw_inputs(7, "native"), 1)
            first, last = (f"layers.{number}.running_var" for number in (1, 70))
            for name in (first, last):
                kept = outcome.buffers_before[name]
                self.assertTrue(buffer_failures(outcome, name, kept.clone(), comparer), name)
            for name, is_compared in ((first, True), (last, False)):
                wrong = outcome.buffers[name] + 0.01
                found = buffer_failures(outcome, name, wrong, comparer)
                self.assertEqual(bool(found), is_compared, name)
            nan = outcome.buffers[last] * float("nan")
            self.assertTrue(buffer_failures(outcome, last, nan, comparer))


class Strides(unittest.TestCase):
    """Inputs keep the strides from get_inputs under every distribution."""

    MADE = {
        "transposed": "torch.randn(96, 64).t()",
        "channels_last": "torch.randn(2, 8, 5, 7).to(memory_format=torch.channels_last)",
        "channels_last_3d": "torch.randn(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d)",
        "every other column": "torch.randn(16, 20)[:, ::2]",
        "expanded": "torch.randn(1, 24).expand(8, 24)",
        "sorted columns": "torch.randn(24, 8).sort(dim=0).values.t()",
        "sorted and expanded": "torch.randn(24).sort().values.expand(6, 24)",
        "padded rows": "torch.randn(8, 33)[:, :32]",
    }

    def test_every_distribution_and_precision_keeps_them(self) -> None:
        for name, made in self.MADE.items():
            task = Task(TASK.format("x * 2").replace("torch.rand(64, 64)", made))
            wanted = task.run({}).get_inputs()[0].stride()
            for precision in ("task", "fp16"):
                reference = Reference(task, {}, 5, precision=precision)
                native = reference.draw_inputs(7, distributions.NATIVE)[0]
                for distribution in [distributions.NATIVE, *distributions.TRANSFORMS]:
                    with self.subTest(f"{name}, {precision}, {distribution}"):
                        drawn = reference.draw_inputs(7, distribution)[0]
                        self.assertEqual(drawn.stride(), wanted)
                        # The values equal those of the contiguous tensor.
                        plain = distributions.apply(distribution, [native.contiguous()])[0]
                        self.assertTrue(torch.equal(drawn, plain))


if __name__ == "__main__":
    unittest.main()
