# SPDX-License-Identifier: Apache-2.0
"""The inputs of timed batches, and what the judge makes of their outputs."""

from __future__ import annotations

import os
import random
import sys
import unittest
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from timing_rig import IN_PLACE, TASK, Model, Rig, bytes_of, honest  # noqa: E402

from harness.worker import region
from harness.timing.fresh_inputs import ALIGNMENT, PROBLEM_MAX, FreshInputs
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
        room = rig.ask("room")
        self.assertTrue(0 < room["free_bytes"] <= room["total_bytes"])

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
        rig.publish()
        self.assertEqual(bytes_of(region.tensors_of(rig.shown)), self.twin(source, rig))

    def twin(self, source: str, rig: Rig) -> list[bytes]:
        """What batch 1's draw is, call by call."""
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


class Publish(unittest.TestCase):
    def setUp(self) -> None:
        self.rig = Rig()

    def seen(self, calls: list[Any]) -> list[bytes]:
        return bytes_of(region.tensors_of(calls))

    def test_nobody_sees_what_was_drawn_before_it_is_published(self) -> None:
        before = self.seen(self.rig.shown)
        self.rig.draw(1)
        self.assertEqual(self.seen(self.rig.shown), before)
        self.rig.publish()
        given = [self.rig.fresh._call(self.rig.fresh._given(), i) for i in range(self.rig.calls)]
        self.assertEqual(self.seen(self.rig.shown), self.seen(given))

    def test_between_tensors_there_is_nothing_of_the_judges(self) -> None:
        self.rig.draw(1)
        memory = self.rig.fresh._given()
        for call in range(self.rig.calls):
            for tensor in region.tensors_of(self.rig.fresh._call(memory, call)):
                tensor.zero_()
        self.assertFalse(memory.any())

    def test_only_the_asked_for_calls_are_shown(self) -> None:
        self.rig.draw(1)
        self.rig.publish(calls=2)
        shown = [self.seen([call]) for call in self.rig.shown]
        self.rig.publish()
        now = [self.seen([call]) for call in self.rig.shown]
        self.assertEqual([one == other for one, other in zip(shown, now)], [True] * 2 + [False] * 2)

    def test_what_a_process_writes_is_gone_with_the_next_batch(self) -> None:
        self.rig.draw(1)
        self.rig.publish()
        first = self.seen(self.rig.shown)
        for tensor in region.tensors_of(self.rig.shown):
            tensor.zero_()
        self.rig.publish()
        self.assertEqual(self.seen(self.rig.shown), first)

    def test_each_process_sees_its_own(self) -> None:
        other = self.rig.share("other")
        before = self.seen(other)
        self.rig.draw(1)
        self.rig.publish("own")
        self.assertEqual(self.seen(other), before)
        self.rig.publish("other")
        self.assertEqual(self.seen(other), self.seen(self.rig.shown))

    def test_more_calls_may_come_later(self) -> None:
        first = self.rig.draw(1)
        self.rig.calls = 9
        self.rig.shown = self.rig.share("own")
        self.assertEqual(self.rig.draw(1)[:4], first)
        self.assertEqual(self.rig.problem(honest), "")

    def test_things_are_asked_for_in_order(self) -> None:
        fresh = FreshInputs(HOST_PLACE, self.rig.reference, self.rig.fresh.comparer, 1)
        self.rig.fresh = fresh
        self.rig.ask("plan")
        draw: dict[str, Any] = {"process": "own", "number": 1, "calls": 1, "late": 0}
        reveal: dict[str, Any] = {"process": "own", "calls": 1}
        look: dict[str, Any] = {"process": "own", "forms": [], "picks": []}
        operations = ("generate_inputs", "publish_inputs", "snapshot_outputs", "verify")
        for name, body in zip(operations, (draw, reveal, look, look)):
            self.assertRaises(Refusal, self.rig.ask, name, **body)
        self.rig.ask("inputs", process="own", calls=1, late=0)
        self.assertRaises(Refusal, self.rig.ask, "snapshot_outputs", **look)
        self.assertRaises(Refusal, self.rig.ask, "generate_inputs", number=1, calls=2, late=0)
        self.assertRaises(Refusal, self.rig.ask, "peek")


class Verify(unittest.TestCase):
    def setUp(self) -> None:
        self.rig = Rig()

    def edited(self, old: str, new: str) -> Model:
        """The honest forward with an edit."""
        forward = TASK.split("def forward")[1].split("def get_inputs")[0]
        self.assertIn(old, forward)
        text = "def forward" + forward.replace(old, new).replace("self, ", "")
        namespace: Any = {"torch": torch}
        exec(text.replace("\n        ", "\n    "), namespace)
        return namespace["forward"]  # type: ignore[no-any-return]

    def test_right_outputs_pass_in_every_call(self) -> None:
        self.assertEqual(self.rig.problem(honest, [0, 1, 2, 3, 3]), "")
        self.assertEqual(self.rig.problem(self.edited("scale + 1", "scale + 1.00001")), "")

    def test_wrong_outputs_are_told_with_their_place(self) -> None:
        edits = [
            ("x * scale", "x", "output[0]: value"),
            ("index - 1", "index", "output[1]['index']: value"),
            ("index - 1", "(index - 1).int()", "output[1]['index']: dtype"),
            ("x * scale + 1", "(x * scale + 1).half()", "output[0]: dtype"),
            ("x * scale + 1", "(x * scale + 1).reshape(3, 5)", "output[0]: shape"),
            ("none.t()", "none", "output[1]['none']: shape"),
            ('"n": 3', '"n": 4', "output[1]['n']: value"),
            ('"n": 3', '"n": "3" * 100000', "output[1]['n']: structure"),
            ('"n"', '"m"', "output[1]: structure"),
            ("flags[0].any()", "flags[0].any(), 1", "output: structure"),
            ("flags[0].any()", "~flags[0].any()", "output[2]: value"),
            ("x * scale + 1", "torch.full((5, 3), float('nan'))", "output[0]: "),
        ]
        for old, new, expected in edits:
            with self.subTest(new):
                problem = self.rig.problem(self.edited(old, new))
                self.assertIn(f"call 3: {expected}", problem)
                self.assertLessEqual(len(problem), PROBLEM_MAX)

    def test_outputs_of_another_call_or_batch_are_wrong(self) -> None:
        kept: list[Any] = []

        def first_of_all(*inputs: Any) -> Any:
            kept.append(honest(*inputs))
            return kept[0]

        self.assertIn("call 3: output[0]: value", self.rig.problem(first_of_all))
        stale = self.rig.batch(honest)
        self.rig.draw(99)
        self.assertIn("call 3: output[0]: value", self.rig.verify(stale, [3]))

    def test_fewer_or_more_outputs_than_calls_are_wrong(self) -> None:
        told = self.rig.batch(honest)
        places = told["places"]
        cases = ((places[:0], []), (places[:1], [0]), (places * 2, [7, 3]), (places, [0]))
        for some, picks in cases:
            with self.subTest(str(picks)):
                problem = self.rig.verify({**told, "places": some}, picks)
                self.assertIn("not one for each call", problem)
        self.assertEqual(self.rig.verify(told, [3]), "")

    def test_an_overwritten_input_is_noticed(self) -> None:
        def scribble(x: Any, index: Any, *others: Any) -> Any:
            result = honest(x, index, *others)
            index[6] += 1
            return result

        self.assertIn("call 3: input[1] ", self.rig.problem(scribble))

    def test_the_reference_may_overwrite_an_input_and_so_must_the_candidate(self) -> None:
        rig = Rig(IN_PLACE)
        self.assertEqual(rig.problem(lambda x, y: x.mul_(2) + y), "")
        self.assertEqual(rig.problem(lambda x, y: x.mul_(2).mul_(1.00001) + y), "")
        self.assertIn("input[0] ", rig.problem(lambda x, y: 2 * x + y))
        self.assertIn("input[1] ", rig.problem(lambda x, y: y.add_(x.mul_(2))))

    def test_what_is_compared_is_what_was_there_at_the_snapshot(self) -> None:
        """A contestant that goes on writing changes nothing, for better or worse."""
        told = self.rig.batch(honest)
        arena = self.rig.fresh.processes["own"].arena
        assert arena is not None
        right = arena.clone()
        self.rig.snapshot(told, [3, 0])
        arena.fill_(0xFF)
        self.assertEqual(self.rig.opinion(), "")
        self.rig.snapshot(told, [3, 0])
        arena.copy_(right)
        self.assertIn("call 3", self.rig.opinion())

    def test_a_snapshot_is_for_one_batch_and_one_answer(self) -> None:
        told = self.rig.batch(honest)
        self.rig.snapshot(told, [3])
        self.rig.draw(99)
        self.assertRaises(Refusal, self.rig.opinion)
        self.rig.snapshot(told, [3])
        self.assertIn("call 3", self.rig.opinion())
        self.assertRaises(Refusal, self.rig.opinion)

    def test_a_snapshot_leaves_what_was_drawn_as_it_is(self) -> None:
        rig = Rig(IN_PLACE)
        told = rig.batch(lambda x, y: x.mul_(2) + y)
        self.assertEqual([rig.verify(told, [3, call]) for call in (1, 1, 0)], [""] * 3)


class LateInputs(unittest.TestCase):
    LATE = [2, 4]

    def setUp(self) -> None:
        self.rig = Rig(IN_PLACE, calls=6, late=2)

    def counts(self, model: Model, late: list[int] | None = None) -> Any:
        """How many late calls were found, and how many did not show their inputs."""
        told = self.rig.late_batch(model, self.LATE)
        self.rig.snapshot(told, [5, 0], self.LATE if late is None else late)
        answer = self.rig.ask("verify", process="own")
        self.assertEqual(answer["problem"], "")
        return answer["late"], answer["ignored"]

    def test_a_call_that_waits_for_its_turn_shows_them(self) -> None:
        self.assertEqual(self.counts(lambda x, y: x.mul_(2) + y), (2, 0))

    def test_a_call_that_is_computed_ahead_does_not(self) -> None:
        """T15: the first call of a batch computes all."""
        bank: list[Any] = []

        def ahead(x: Any, y: Any) -> Any:
            if not bank:
                bank.extend([other.mul_(2) + another for other, another in self.rig.shown])
            return bank.pop(0)

        self.assertEqual(self.counts(ahead), (2, 2))

    def test_only_those_that_came_in_time_are_counted(self) -> None:
        self.assertEqual(self.counts(lambda x, y: x.mul_(2) + y, late=[4]), (1, 0))

    def test_they_are_other_inputs_than_any_that_were_published(self) -> None:
        drawn = self.rig.draw(1)
        self.rig.publish()
        before = bytes_of(region.tensors_of(self.rig.shown))
        self.rig.ask("replace_inputs", process="own", calls=self.LATE)
        after = bytes_of(region.tensors_of(self.rig.shown))
        changed = [i // 2 for i in range(12) if before[i] != after[i]]
        self.assertEqual(changed, [2, 2, 4, 4])
        for call in self.LATE:
            self.assertFalse({*after[2 * call : 2 * call + 2]} & {*before})
        self.assertEqual(len(drawn), 6)

    def test_no_more_are_replaced_than_were_drawn(self) -> None:
        self.rig.draw(1)
        replace = {"process": "own", "calls": [1, 2, 3]}
        self.assertRaises(Refusal, self.rig.ask, "replace_inputs", **replace)


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

    def test_a_plan_forgets_the_processes_of_the_candidate_before(self) -> None:
        self.time("plan", seed=1)
        self.time("inputs", process="own", calls=2, late=0)
        self.time("generate_inputs", number=1, calls=2, late=0)
        self.time("plan", seed=1)
        self.assertRaises(Refusal, self.time, "generate_inputs", number=1, calls=2, late=0)

    def test_each_seed_of_a_plan_gives_other_inputs(self) -> None:
        drawn = []
        for seed in (1, 2, 1):
            self.time("plan", seed=seed)
            self.time("inputs", process="own", calls=1, late=0)
            self.time("generate_inputs", number=1, calls=1, late=0)
            opened: Any = self.judge._opened
            drawn.append(opened.timing.private.tolist())
        self.assertEqual(drawn[0], drawn[2])
        self.assertNotEqual(drawn[0], drawn[1])

    def test_close_gives_all_memory_back(self) -> None:
        self.time("plan", seed=0)
        self.time("inputs", process="own", calls=2, late=0)
        self.time("close")
        opened: Any = self.judge._opened
        self.assertIsNone(opened.timing)
        self.time("close")
        self.assertRaises(Refusal, self.time, "generate_inputs", number=1, calls=2, late=0)


if __name__ == "__main__":
    unittest.main()
