# SPDX-License-Identifier: Apache-2.0
"""The inputs of timed batches, and the judge's checks of their outputs."""

from __future__ import annotations

import copy
import os
import random
import sys
import unittest
from pathlib import Path
from typing import Any, cast

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from timing_rig import IN_PLACE, Rig, bytes_of, honest  # noqa: E402

from harness.worker import region
from harness.timing.fresh_inputs import ALIGNMENT, PROBLEM_MAX, FreshInputs
from harness.timing.timed_calls import TimedCalls
from harness.judge.judge import Judge
from harness.worker.place import HOST_PLACE
from harness.judge.reference import Reference, derive_seed
from harness.judge.task import Task
from harness.worker.wire import Question, Refusal


class Slots(unittest.TestCase):
    def test_each_tensor_has_an_aligned_place_of_its_own(self) -> None:
        rig = Rig()
        nodes = region.tensor_nodes(rig.fresh.tree)
        self.assertEqual([node["offset"] for node in nodes], [512 * i for i in range(4)])
        self.assertEqual(rig.plan["inputs_bytes"], 4 * 512)
        self.assertEqual(rig.plan["outputs_bytes"], 4 * 512)

    def test_the_operations_of_a_gradient_are_counted(self) -> None:
        rig = Rig("""
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = torch.nn.Sigmoid()
        self.linear = torch.nn.Linear(8, 4)
    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(self.linear(self.act(x)).sum(), x)[0]
def get_inputs():
    return [torch.randn(16, 8)]
def get_init_inputs():
    return []
""")
        products = 2  # Forward, and the gradient of the layer's input.
        self.assertEqual(rig.plan["operations"], products * 2 * 16 * 8 * 4 + 16 * 8)

    def test_no_two_tensors_of_any_calls_overlap(self) -> None:
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for number in range(20):
            with self.subTest(f"seed {seed}, number {number}"):
                self.check_places(self.random_task(rng))

    def random_task(self, rng: random.Random) -> str:
        def tensor() -> str:
            shape = [rng.choice([0, 1, 3, 30, 300]) for _ in range(rng.randint(0, 2))]
            kind = rng.choice(
                ["rand({})", "rand({}).half()", "randint(0, 9, {})", "rand({}) < 0.5"]
            )
            return "torch." + kind.format(shape)

        tensors = ", ".join(tensor() for _ in range(rng.randint(1, 5)))
        model = "class Model(torch.nn.Module):\n    def forward(self, *given):\n        return 1\n"
        makers = (
            f"def get_inputs():\n    return [{tensors}]\ndef get_init_inputs():\n    return []\n"
        )
        return "import torch\n" + model + makers

    def check_places(self, source: str) -> None:
        rig = Rig(source, calls=3)
        taken: set[int] = set()
        for call in range(rig.calls):
            for node in region.tensor_nodes(rig.fresh.tree):
                start = call * rig.fresh.stride + node["offset"]
                place = {*range(start, start + node["nbytes"])}
                self.assertEqual(start % ALIGNMENT, 0)
                self.assertFalse(place & taken)
                taken |= place
        self.assertLessEqual(max(taken, default=0), rig.calls * rig.fresh.stride)
        rig.draw(1)
        self.assertEqual(bytes_of(region.tensors_of(rig.shown)), self.twin(source, rig))

    def test_strides_are_those_of_the_task(self) -> None:
        model = "class Model(torch.nn.Module):\n    def forward(self, *given):\n        return 1\n"
        tensors = "torch.rand(6, 4).t(), torch.rand(4, 10)[1:, ::3], torch.rand(1, 5).expand(4, 5)"
        source = (
            f"import torch\n{model}def get_inputs():\n    return [{tensors}]\n"
            "def get_init_inputs():\n    return []\n"
        )
        rig = Rig(source, calls=3)
        rig.draw(1)
        self.assertEqual(bytes_of(region.tensors_of(rig.shown)), self.twin(source, rig))
        for shown in rig.shown:
            self.assertEqual([one.stride() for one in shown], [(1, 4), (10, 3), (0, 1)])

    def twin(self, source: str, rig: Rig) -> list[bytes]:
        """The expected inputs of batch 1, call by call."""
        reference = Reference(Task(source), {}, 5)
        torch.manual_seed(derive_seed(rig.fresh.seed, "batch", 1))
        drawn = [reference.draw_more() for _ in range(rig.calls)]
        return bytes_of(region.tensors_of(drawn))

    def test_inputs_without_tensors_have_slots_too(self) -> None:
        task = IN_PLACE.replace("x, y):", "n):\n        return n + 1\n    def unused(self, x, y):")
        task = task.replace("[torch.randn(40), torch.randn(40)]", "[1]")
        rig = Rig(task)
        self.assertEqual(rig.problem(lambda n: n + 1), "")
        self.assertIn("value", rig.problem(lambda n: n + 2))


class Draw(unittest.TestCase):
    def setUp(self) -> None:
        self.rig = Rig()

    def test_a_number_gives_the_same_bits_again_and_another_one_others(self) -> None:
        first, second = self.rig.draw(1), self.rig.draw(2)
        self.assertEqual(self.rig.draw(1), first)
        self.assertEqual(Rig().draw(1), first)
        for one, other in zip(first, second):
            self.assertNotEqual(one, other)

    def test_all_calls_of_all_batches_differ(self) -> None:
        drawn = [one for number in range(1, 6) for one in self.rig.draw(number)]
        self.assertEqual(len({*drawn}), len(drawn))

    def test_another_seed_gives_other_bits(self) -> None:
        self.assertNotEqual(Rig(seed=2).draw(1), self.rig.draw(1))

    def test_fewer_calls_are_the_first_ones(self) -> None:
        self.assertEqual(self.rig.draw(3, calls=2), self.rig.draw(3)[:2])

    def test_what_happens_between_two_draws_does_not_matter(self) -> None:
        first = self.rig.draw(1)
        torch.rand(10)
        self.rig.problem(honest)
        self.assertEqual(self.rig.draw(1), first)


class Check(unittest.TestCase):
    def setUp(self) -> None:
        self.rig = Rig()

    def test_right_outputs_pass_in_every_call(self) -> None:
        for call in range(self.rig.calls):
            self.assertEqual(self.rig.problem(honest, call), "")

    def test_wrong_outputs_are_told_with_their_place(self) -> None:
        def wrong(*given: Any) -> Any:
            first, second, third = honest(*given)
            return first, {**second, "index": second["index"] + 1}, third

        self.assertIn("output[1]['index']: value", self.rig.problem(wrong))
        self.assertIn("structure", self.rig.problem(lambda *_: 5))
        long = self.rig.problem(lambda *given: (honest(*given)[0], {"x" * 9000: 1}, 2))
        self.assertLessEqual(len(long), PROBLEM_MAX)

    def test_outputs_of_another_call_or_batch_are_wrong(self) -> None:
        self.rig.draw(1)
        first = [self.rig.call_with_writes(honest, call) for call in (0, 1)]
        self.assertEqual(self.rig.opinion(first[0], 0), "")
        self.assertIn("value", self.rig.opinion(first[0], 1))
        self.rig.draw(2)
        self.assertIn("value", self.rig.opinion(first[0], 0))

    def test_an_input_that_the_reference_writes_is_the_candidates_to_write(self) -> None:
        rig = Rig(IN_PLACE)
        self.assertEqual(rig.plan["written"], [0])
        self.assertEqual(rig.problem(lambda x, y: x.mul_(2) + y), "")
        self.assertIn("written input", rig.problem(lambda x, y: x * 2 + y))

    def test_trees_that_no_candidate_of_ours_sends_are_malformed(self) -> None:
        rig = Rig(IN_PLACE)
        rig.draw(1)
        good = rig.call_with_writes(lambda x, y: x.mul_(2) + y, 0)
        deep: Any = good
        for _ in range(region.DEPTH_MAX + 2):
            deep = [deep]
        for odd in (None, good[0], [*good], (*good, 1), ()):
            with self.subTest(str(odd)[:40]):
                self.assertIn("malformed outputs: ", rig.opinion(odd, 0))
        tree, descriptor = region.pack(good)
        node = region.tensor_nodes(tree)[0]
        changes: list[dict[str, Any]] = [
            {"offset": -512}, {"offset": 1 << 62}, {"offset": 0.0}, {"offset": None},
            {"stride": [-1]}, {"stride": [1 << 62]}, {"stride": "1"}, {"shape": [-40]},
            {"nbytes": 80}, {"dtype": "float128"}, {"t": "pointer"},
            {"shape": [1 << 38], "stride": [0], "nbytes": 1 << 40},
        ]  # fmt: skip
        for change in changes:
            with self.subTest(str(change)):
                changed = copy.deepcopy(tree)
                region.tensor_nodes(changed)[0].update(change)
                problem = rig.opinion_of_tree(changed, os.dup(descriptor), 0)
                self.assertIn("malformed outputs: ", problem)
        self.assertEqual(rig.opinion_of_tree(tree, descriptor, 0), "")
        self.assertEqual(node["dtype"], "float32")

    def test_requests_out_of_order_are_refused(self) -> None:
        fresh = FreshInputs(
            HOST_PLACE, self.rig.reference, self.rig.fresh.comparer, 1, self.rig.fresh.timed
        )
        fresh.answer("plan", Question({}))
        body = {"number": 1, "calls": 1}
        self.assertRaises(Refusal, fresh.answer, "generate_inputs", Question(body))
        self.assertRaises(Refusal, fresh.answer, "publish", Question(body))


class Warmed(unittest.TestCase):
    """A model's calls on a device whose allocator has memory of earlier calls, or has none."""

    class GrowingPlace:
        def __init__(self, held: list[int]) -> None:
            self.held = held

        def held_bytes(self) -> int:
            return self.held.pop(0)

    class Recorder:
        def __init__(self, events: list[str]) -> None:
            self.events = events

        def reset(self) -> None:
            self.events.append("reset")

        def begin(self, *, is_gated: bool) -> None:
            self.events.append("begin")

        def end(self) -> None:
            self.events.append("end")

        def times(self, calls: int) -> list[tuple[float, bool]]:
            return [(1.0, True)] * calls

    def test_calls_that_got_new_memory_are_made_again(self) -> None:
        events: list[str] = []

        class Noted(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                events.append("call")
                return x + 1

        one = ["reset", "begin", "call", "end"]
        for held, rounds in (([5, 5], 1), ([5, 9, 9, 9], 2), ([5, 9, 9, 12, 12, 13], 3)):
            place: Any = self.GrowingPlace(held)
            timed = TimedCalls("", place)
            timed._stopwatch = cast(Any, self.Recorder(events))
            events.clear()
            timed.time(Noted(), lambda number: [torch.ones(2)], 1, is_gated=True)
            self.assertEqual(events, rounds * one)
            self.assertEqual(held, [])


class InTheJudge(unittest.TestCase):
    def ask(self, body: Any) -> Any:
        answer = self.judge.answer(Question(body))
        for descriptor in answer.descriptors:
            os.close(descriptor)
        return answer.body

    def setUp(self) -> None:
        self.judge = Judge()
        options = {"shapes": False, "inputs": "native", "trials": 1}
        self.ask({"op": "open", "source": IN_PLACE, "options": options})
        self.ask({"op": "begin", "seed": 3})

    def time(self, operation: str, **body: Any) -> Any:
        return self.ask({"op": f"time_{operation}", **body})

    def test_a_plan_forgets_the_memory_of_the_candidate_before(self) -> None:
        self.time("plan", tf32=False, seed=1)
        self.time("share", calls=2)
        self.time("generate_inputs", number=1, calls=2)
        self.time("plan", tf32=False, seed=1)
        self.assertRaises(Refusal, self.time, "generate_inputs", number=1, calls=2)

    def test_each_seed_of_a_plan_gives_other_inputs(self) -> None:
        drawn = []
        for seed in (1, 2, 1):
            self.time("plan", tf32=False, seed=seed)
            self.time("share", calls=1)
            self.time("generate_inputs", number=1, calls=1)
            opened: Any = self.judge._opened
            drawn.append(opened.timing.private.tolist())
        self.assertEqual(drawn[0], drawn[2])
        self.assertNotEqual(drawn[0], drawn[1])

    def test_rest_frees_all_memory(self) -> None:
        self.time("plan", tf32=False, seed=0)
        self.time("share", calls=2)
        self.ask({"op": "rest"})
        opened: Any = self.judge._opened
        self.assertIsNone(opened.timing)
        self.assertFalse(opened.references)
        self.ask({"op": "rest"})
        self.assertRaises(Refusal, self.time, "generate_inputs", number=1, calls=2)


if __name__ == "__main__":
    unittest.main()
