# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import random
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from fake_device import ELAPSED_US, FakeDevice  # noqa: E402
from support import ZygoteTest  # noqa: E402

from harness.worker import output_places, region
from harness.contestant.batches import KERNELS_MAX, Batches, _summary
from harness.worker.output_places import Memories
from harness.worker.place import HOST_PLACE
from harness.worker.wire import Answer, Question, Refusal

STRIDE = 512
CALLS = 4


class BatchesTest(unittest.TestCase):
    """A contestant to which inputs for CALLS calls and an arena are shared."""

    in_place = False

    def setUp(self) -> None:
        self.device = FakeDevice()
        self.batches: Any = Batches(self.device, HOST_PLACE)  # type: ignore[arg-type]
        self.inputs, self.descriptor = region.HOST.reserve(CALLS * STRIDE)
        self.addCleanup(os.close, self.descriptor)
        self.arena, self.arena_descriptor = region.HOST.reserve(1 << 16)
        self.addCleanup(os.close, self.arena_descriptor)
        for call in range(CALLS):
            self.given(call).copy_(torch.arange(6.0) + 10 * call)

    def given(self, call: int) -> torch.Tensor:
        return self.inputs[call * STRIDE :][:24].view(torch.float32)

    def attach(self, what: str, descriptor: int, **body: Any) -> Answer:
        question = Question(body, [descriptor])
        return self.batches.attach(what, question)  # type: ignore[no-any-return]

    def attach_all(self) -> None:
        node = {"t": "tensor", "dtype": "float32", "shape": [6], "offset": 0, "nbytes": 24}
        tree = {"t": "list", "items": [node, {"t": "value", "value": 2}]}
        self.attach("gate", self.descriptor)
        self.attach_inputs(tree, STRIDE, CALLS)
        self.attach("arena", self.arena_descriptor, nbytes=self.arena.numel())

    def attach_inputs(self, tree: Any, stride: int, calls: int) -> None:
        nbytes = self.inputs.numel()
        body = {"inputs": tree, "stride": stride, "calls": calls, "nbytes": nbytes}
        self.attach("inputs", self.descriptor, **body, in_place=self.in_place)

    def queue(self, model: Callable[..., Any], **body: Any) -> Any:
        question = {"number": 1, "calls": CALLS, "enqueued": True}
        return self.batches.enqueue(model, Question({**question, **body})).body

    def run_enqueued(self, model: Callable[..., Any], **body: Any) -> list[Any]:
        """What the judge sees of a gated batch's outputs."""
        return self.read(self.queue(model, **body))

    def read(self, body: Any) -> list[Any]:
        told = json.loads(json.dumps(body))["outputs"]
        memories = Memories(self.arena, self.inputs)
        return [
            output_places.read(told["forms"], place, memories, 1 << 20) for place in told["places"]
        ]


def double(x: torch.Tensor, factor: int) -> torch.Tensor:
    return x * factor


class Protocol(BatchesTest):
    def test_nothing_is_queued_before_inputs_and_arena_came(self) -> None:
        self.assertRaises(Refusal, self.queue, double)
        self.attach_inputs({"t": "list", "items": []}, stride=8, calls=9)
        self.assertRaises(Refusal, self.queue, double)
        self.attach_all()
        self.queue(double)

    def test_no_more_calls_are_queued_than_there_are_inputs(self) -> None:
        self.attach_all()
        self.assertRaises(Refusal, self.queue, double, calls=CALLS + 1)

    def test_nothing_is_finished_before_it_was_queued(self) -> None:
        self.attach_all()
        self.assertRaises(Refusal, self.batches.finish, double)
        self.queue(double)
        self.attach_all()  # What was queued is forgotten: its inputs are gone.
        self.assertRaises(Refusal, self.batches.finish, double)

    def test_each_call_has_inputs_of_its_own_and_plain_values_for_all(self) -> None:
        self.attach_all()
        seen: list[Any] = []
        self.queue(lambda x, factor: seen.append((x.clone(), factor)))
        self.assertEqual([factor for _, factor in seen], [2] * CALLS)
        for call, (x, _) in enumerate(seen):
            self.assertTrue(torch.equal(x, self.given(call)))

    def test_a_failed_forward_leaves_nothing_to_finish(self) -> None:
        self.attach_all()
        self.assertRaises(ZeroDivisionError, self.queue, lambda x, factor: 1 // 0)
        self.assertRaises(Refusal, self.batches.finish, double)


class Gate(BatchesTest):
    def setUp(self) -> None:
        super().setUp()
        self.attach_all()
        self.device.journal.clear()

    def noted(self, x: torch.Tensor, factor: int) -> torch.Tensor:
        self.device.journal.append("call")
        return x * factor

    def test_a_gated_batch_is_queued_between_gate_and_end(self) -> None:
        self.queue(self.noted, number=3, calls=2)
        self.assertEqual(self.device.journal, ["close 3", "call", "call", "end"])
        self.assertEqual(self.device.ready, 0)
        self.device.gate = 3
        body = self.batches.finish(self.noted).body
        self.assertEqual(body, {"events_us": ELAPSED_US})
        self.assertEqual(self.device.journal[4:], ["finish 3", "trace"])
        self.assertEqual(self.device.ready, 3)

    def test_an_open_batch_runs_once_the_gate_is_open(self) -> None:
        self.assertEqual(self.queue(self.noted, number=3, calls=2, enqueued=False), {})
        self.assertEqual(self.device.journal, [])
        self.device.gate = 3
        body = self.batches.finish(self.noted).body
        steps = ["await 3", "call", "call", "end", "finish 3", "trace"]
        self.assertEqual(self.device.journal, steps)
        self.assertEqual((body["events_us"], len(body["outputs"]["places"])), (ELAPSED_US, 2))

    def test_an_open_batch_sees_what_was_revealed_after_it_was_queued(self) -> None:
        self.queue(double, enqueued=False)
        self.given(2).fill_(100)
        self.device.gate = 1
        output = self.read(self.batches.finish(double).body)[2]
        self.assertEqual(output.tolist(), [200.0] * 6)

    def test_a_trace_is_taken_when_all_is_over_and_told_if_there_is_one(self) -> None:
        self.device.gate = 1
        traces: list[Any] = [{}, {"busy_us": 2.5, "kernels": []}]
        for traced in traces:
            self.device.journal.clear()
            self.device.traced = traced
            self.queue(self.noted, calls=1)
            body = self.batches.finish(self.noted).body
            told = {name: body[name] for name in ("busy_us", "kernels") if name in body}
            self.assertEqual(told, traced)
            self.assertEqual(self.device.journal[-2:], ["finish 1", "trace"])


class Outputs(BatchesTest):
    def setUp(self) -> None:
        super().setUp()
        self.attach_all()

    def test_what_was_allocated_in_the_batch_is_seen_where_it_lies(self) -> None:
        for call, seen in enumerate(self.run_enqueued(double)):
            self.assertTrue(torch.equal(seen, 2 * self.given(call)))
        [*outputs] = self.batches._batch.outputs
        outputs[1].fill_(7)
        again = self.read(self.batches._layout(self.batches._batch))[1]
        self.assertEqual(again.tolist(), [7.0] * 6)

    def test_structure_views_and_plain_values_are_told(self) -> None:
        def forward(x: torch.Tensor, factor: int) -> Any:
            y = (x * factor).reshape(2, 3)
            return {"t": y.t(), "row": [y[1].expand(4, 3)], "n": 3}, (y > 4,), None

        for call, seen in enumerate(self.run_enqueued(forward)):
            first, (mask,), _ = forward(self.given(call), 2)
            self.assertIsNone(seen[2])
            self.assertTrue(torch.equal(seen[0]["t"], first["t"]))
            self.assertTrue(torch.equal(seen[0]["row"][0], first["row"][0]))
            self.assertTrue(torch.equal(seen[1][0], mask))
            self.assertEqual(seen[0]["n"], 3)

    def test_what_lies_elsewhere_is_copied_into_the_arena(self) -> None:
        elsewhere = torch.arange(5).flip(0)
        weight = torch.nn.Parameter(torch.rand(3))

        def forward(x: torch.Tensor, factor: int) -> Any:
            return x * factor, x, x[1:4], elsewhere, weight, weight.data[:2]

        for call, seen in enumerate(self.run_enqueued(forward)):
            for mine, theirs in zip(forward(self.given(call), 2), seen, strict=True):
                self.assertTrue(torch.equal(mine, theirs))
                self.assertTrue(self.is_in(self.arena, theirs))

    def test_what_lies_in_the_inputs_stays_there_where_it_may(self) -> None:
        self.in_place = True
        self.attach_all()

        def forward(x: torch.Tensor, factor: int) -> Any:
            return x.mul_(factor), x[1:4], x.view(2, 3).t()

        for call, seen in enumerate(self.run_enqueued(forward)):
            x = self.given(call)
            for mine, theirs in zip((x, x[1:4], x.view(2, 3).t()), seen, strict=True):
                self.assertTrue(torch.equal(mine, theirs))
                self.assertEqual(mine.data_ptr(), theirs.data_ptr())

    def test_what_a_candidate_has_put_elsewhere_is_refused_by_the_judge(self) -> None:
        elsewhere = torch.zeros(6)
        self.batches._visible = lambda tensor: elsewhere  # As one that finds it in a frame may do.
        self.assertRaisesRegex(Refusal, "bad offset", self.run_enqueued, double)

    def is_in(self, memory: torch.Tensor, tensor: torch.Tensor) -> bool:
        return 0 <= tensor.data_ptr() - memory.data_ptr() < memory.numel()

    def test_tensors_without_elements_are_told(self) -> None:
        def forward(x: torch.Tensor, factor: int) -> Any:
            return torch.empty(0, 3), x[:0], x * factor

        for seen in self.run_enqueued(forward):
            self.assertEqual([tuple(one.shape) for one in seen], [(0, 3), (0,), (6,)])

    def test_signs_and_imaginary_parts_that_are_changed_lazily_are_changed(self) -> None:
        def forward(x: torch.Tensor, factor: int) -> Any:
            z = torch.complex(x, x + 1)
            return z.conj(), z.conj().imag, z.resolve_conj()

        for call, seen in enumerate(self.run_enqueued(forward)):
            for mine, theirs in zip(forward(self.given(call), 2), seen, strict=True):
                self.assertTrue(torch.equal(mine, theirs))

    def test_the_device_of_each_output_is_told(self) -> None:
        [form] = self.queue(lambda x, factor: (x, torch.empty(0)))["outputs"]["forms"]
        self.assertEqual([node["device"] for node in region.tensor_nodes(form)], ["cpu"] * 2)

    def test_what_is_no_data_is_refused(self) -> None:
        class Lazy(torch.Tensor):
            pass

        for value in (object(), torch.zeros(2).as_subclass(Lazy), 1j, {1.5: 1}):
            with self.subTest(type(value).__name__):
                self.assertRaises(Refusal, self.queue, lambda x, factor, value=value: value)


class Summary(unittest.TestCase):
    ALIKE = ("name", "owner", "stream", "grid", "block", "registers", "shared_bytes")

    def launches(self, rng: random.Random, count: int) -> list[Any]:
        return [
            {
                "name": rng.choice("ab"), "owner": rng.choice("xy"), "stream": rng.choice([0, 7]),
                "us": rng.choice([0.5, 1.0, 2.25]),
                "early": rng.random() < 0.3, "late": rng.random() < 0.2,
                "grid": [rng.choice([1, 2]), 1, 1],
                "block": [32, 1, 1], "registers": 8, "shared_bytes": rng.choice([0, 16]),
            }
            for _ in range(count)
        ]  # fmt: skip

    def test_it_agrees_with_sums_over_launches_that_are_alike(self) -> None:
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for count in (0, 1, 2, 30, 300):
            with self.subTest(f"seed {seed}, {count} launches"):
                launches = self.launches(rng, count)
                summary = _summary([dict(one) for one in launches])
                for entry in summary:
                    alike = [
                        one for one in launches if all(one[key] == entry[key] for key in self.ALIKE)
                    ]
                    self.assertEqual(entry["launches"], len(alike))
                    self.assertEqual(entry["early"], sum(one["early"] for one in alike))
                    self.assertEqual(entry["late"], sum(one["late"] for one in alike))
                    self.assertAlmostEqual(entry["us"], sum(one["us"] for one in alike))
                    self.assertEqual({*entry}, {*self.ALIKE, "launches", "us", "early", "late"})
                self.assertEqual(sum(entry["launches"] for entry in summary), count)
                times = [entry["us"] for entry in summary]
                self.assertEqual(times, sorted(times, reverse=True))

    def test_the_longest_are_kept(self) -> None:
        [launch] = self.launches(random.Random(1), 1)
        launches = [{**launch, "name": str(i), "us": float(i)} for i in range(3 * KERNELS_MAX)]
        kept = [entry["us"] for entry in _summary(launches)]
        self.assertEqual(kept, [float(3 * KERNELS_MAX - 1 - i) for i in range(KERNELS_MAX)])


class WithoutADevice(ZygoteTest):
    def test_a_contestant_is_not_timed(self) -> None:
        with self.zygote.spawn("contestant") as contestant:
            question = {"op": "time_enqueue", "number": 1, "calls": 1, "enqueued": True}
            answer, _ = contestant.ask(question)
            self.assertEqual((answer["ok"], answer["error"]["kind"]), (False, "protocol"))


if __name__ == "__main__":
    unittest.main()
