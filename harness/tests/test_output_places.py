# SPDX-License-Identifier: Apache-2.0
"""What is told of outputs and read again; test_hostile_outputs.py tells nonsense."""

from __future__ import annotations

import json
import random
import unittest
from typing import Any

import torch

from harness.worker import region
from harness.worker.output_places import NOWHERE, Memories, _key, described, read

BYTES_MAX = 1 << 20


class Told(unittest.TestCase):
    def setUp(self) -> None:
        self.first = torch.arange(1024, dtype=torch.uint8)
        self.second = torch.arange(512, dtype=torch.uint8) + 7
        self.memories = Memories(self.first, None, self.second)

    def back(self, outputs: list[Any], shown: list[Any] | None = None) -> tuple[Any, list[Any]]:
        """What is told, as JSON leaves it, and what the judge reads of it."""
        body = json.loads(json.dumps(described(outputs, shown or outputs, self.memories)))
        return body, [read(body["forms"], one, self.memories, BYTES_MAX) for one in body["places"]]

    def test_a_form_is_told_once(self) -> None:
        outputs = [self.first[8 * call :][:8].view(2, 4) for call in range(5)]
        body, seen = self.back(outputs)
        self.assertEqual(len(body["forms"]), 1)
        self.assertEqual(body["places"], [[0, 8 * call] for call in range(5)])
        for mine, theirs in zip(outputs, seen, strict=True):
            self.assertEqual(mine.data_ptr(), theirs.data_ptr())
            self.assertEqual((mine.shape, mine.stride()), (theirs.shape, theirs.stride()))

    def test_memories_are_counted_one_behind_the_other(self) -> None:
        self.assertEqual(self.memories.offset_of(self.second[3:]), 1024 + 3)
        self.assertEqual(self.memories.offset_of(torch.empty(3)), NOWHERE)
        self.assertEqual(self.memories.offset_of(torch.empty(0)), 0)
        self.assertEqual(Memories().offset_of(self.first), NOWHERE)

    def test_any_values_come_back(self) -> None:
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for number in range(200):
            kinds = [self.value(rng, 0) for _ in range(rng.randint(1, 3))]
            outputs = [rng.choice(kinds) for _ in range(6)]
            with self.subTest(f"seed {seed}, number {number}"):
                body, seen = self.back(outputs)
                for mine, theirs in zip(outputs, seen, strict=True):
                    self.assertEqual(self.description(mine), self.description(theirs))
                trees = {json.dumps(region.form_of(one)) for one in outputs}
                self.assertEqual(len(body["forms"]), len(trees))

    def value(self, rng: random.Random, depth: int) -> Any:
        kind = rng.choice(["tensor", "tensor", "list", "tuple", "dict", "plain"])
        items = [] if depth > 2 else [self.value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
        if kind == "tensor":
            dtype = rng.choice([torch.int8, torch.int32])
            memory = rng.choice([self.first, self.second]).view(dtype)
            shape = [rng.choice([0, 1, 2, 3]) for _ in range(rng.randint(0, 3))]
            stride = [rng.choice([1, 2, 4]) for _ in shape]
            return memory[rng.randrange(64) :].as_strided(shape, stride)
        if kind == "plain":
            return rng.choice([None, True, 1, 1.0, 0.0, -0.0, "1", "None", torch.float32])
        if kind == "dict":
            return dict(zip(rng.sample(["a", "b", 1, 0], 4), items))
        return items if kind == "list" else tuple(items)

    def description(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            stride = value.stride() if value.numel() else ()
            return str(value.dtype), value.shape, stride, value.tolist()
        if isinstance(value, dict):
            return [(repr(key), self.description(item)) for key, item in value.items()]
        if isinstance(value, (list, tuple)):
            return type(value).__name__, [self.description(item) for item in value]
        return repr(value)

    def test_forms_that_look_alike_are_told_apart(self) -> None:
        x, y = self.first[:8], self.first[8:16]
        alike: list[tuple[Any, Any]] = [
            ([x, y], (x, y)), ([x, [y]], [[x], y]), ({"a": x}, {"b": x}), ({1: x}, {"1": x}),
            ({1: x}, {True: x}), ([x, 1], [x, True]), ([x, 1], [x, 1.0]), ([x, 0.0], [x, -0.0]),
            ([x, "None"], [x, None]), (x, [x]), (x, x.view(torch.int8)), (x, x.view(2, 4)),
            (x.view(2, 4), x.view(4, 2).t()), (x, x[:4]), ({"a": x, "b": y}, {"b": x, "a": y}),
            (x, torch.nn.Parameter(x, requires_grad=False)), ([], ()), ({}, []),
        ]  # fmt: skip
        for mine, other in alike:
            with self.subTest(f"{mine} {other}"):
                self.assertNotEqual(_key(mine), _key(other))

    def test_the_device_is_that_of_what_was_returned(self) -> None:
        """A copy that the judge can see may be on another one, and calls may differ in it."""
        shown = [self.first[:4].view(torch.float32), self.first[4:8].view(torch.float32)]
        body = described([torch.empty(1, device="meta"), shown[1]], shown, self.memories)
        self.assertEqual([form["device"] for form in body["forms"]], ["meta", "cpu"])
        self.assertEqual(body["places"], [[0, 0], [1, 4]])

    def test_one_place_is_told_for_each_call(self) -> None:
        self.assertEqual(described([], [], self.memories), {"forms": [], "places": []})
        self.assertRaises(ValueError, described, [self.first], [], self.memories)


if __name__ == "__main__":
    unittest.main()
