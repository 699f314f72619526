# SPDX-License-Identifier: Apache-2.0
"""Outputs of timed batches as an honest contestant does not send them."""

from __future__ import annotations

import copy
import os
import random
import sys
import unittest
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from timing_rig import ALL_IN_PLACE, IN_PLACE, Rig  # noqa: E402

from harness.worker import region


class HostileOutputs(unittest.TestCase):
    """Trees that an honest contestant does not send, for outputs that are right otherwise."""

    def setUp(self) -> None:
        self.rig = Rig(IN_PLACE, calls=1)
        told = self.rig.batch(lambda x, y: x.mul_(2) + y)
        self.good = with_offset(told, 0)
        arena = self.rig.fresh.processes["own"].arena
        assert arena is not None
        self.arena = arena

    def problem(self, tree: Any) -> Any:
        return self.problem_of([tree], [0, *offsets_in(tree)])

    def problem_of(self, forms: Any, place: Any) -> Any:
        return self.rig.verify({"forms": forms, "places": [place]}, [0])

    def changed(self, **change: Any) -> Any:
        return {**copy.deepcopy(self.good), **change}

    def test_the_good_one_passes(self) -> None:
        self.assertEqual(self.problem(self.changed()), "")

    def test_places_outside_the_arena_are_refused(self) -> None:
        end = self.arena.numel()
        changes: list[dict[str, Any]] = [
            {"offset": -512}, {"offset": end}, {"offset": end - 159}, {"offset": end - 156},
            {"offset": end + 512}, {"offset": 2 * end},
            {"offset": 1 << 62}, {"offset": 1 << 80}, {"offset": 1}, {"offset": 0.0},
            {"offset": None}, {"stride": [-1]}, {"stride": [end]}, {"stride": [1 << 62]},
            {"stride": [421]}, {"stride": []}, {"stride": [1, 1]}, {"stride": "1"},
            {"shape": [40, 2], "stride": [1, 16384], "nbytes": 320},
            {"shape": [-40]}, {"nbytes": 80}, {"dtype": "float128"}, {"t": "pointer"},
        ]  # fmt: skip
        for change in changes:
            with self.subTest(str(change)):
                self.assertIn("malformed outputs: ", self.problem(self.changed(**change)))
        trees: list[Any] = [None, 5, "tensor", [], {}, {"t": "list"}]
        for tree in trees:
            with self.subTest(str(tree)):
                self.assertIn("malformed outputs: ", self.problem(tree))

    def test_places_that_are_none_are_refused(self) -> None:
        forms, offset = [self.good], self.good["offset"]
        self.assertEqual(self.problem_of(forms, [0, offset]), "")
        places: list[Any] = [
            None, 5, "", "0", [], {}, [0], [1, offset], [-2, offset], ["0", offset], [None, offset],
            [[0], offset], [0, str(offset)], [0, [offset]], [0, None], [0, True], [0.0, offset],
            {"0": offset},
        ]  # fmt: skip
        for place in places:
            with self.subTest(str(place)):
                self.assertIn("malformed outputs: ", self.problem_of(forms, place))
        for odd in (None, 5, "forms", [], {}, {"0": self.good}):
            with self.subTest(str(odd)):
                self.assertIn("malformed outputs: ", self.problem_of(odd, [0, offset]))

    def test_each_tensor_of_a_form_has_an_offset_of_its_own(self) -> None:
        pair = {"t": "list", "items": [self.good, self.good]}
        self.assertIn("malformed outputs: ", self.problem_of([pair], [0, self.good["offset"]]))
        again = {**pair, "t": "tuple"}
        places = [0, self.good["offset"], self.good["offset"]]
        self.assertIn("structure", self.problem_of([again], places))

    def test_the_arenas_last_bytes_can_be_reached(self) -> None:
        end = self.arena.numel()
        expected = region.unpack(self.good, region.Mapping(self.memory_of(self.arena)))
        self.arena[end - 160 :].view(torch.float32).copy_(expected)
        self.assertEqual(self.problem(self.changed(offset=end - 160)), "")
        self.arena[end - 40 * 1024 :].view(torch.float32)[::256].copy_(expected)
        spread = self.changed(offset=end - 40 * 1024, stride=[256])
        self.assertEqual(self.problem(spread), "")
        self.assertIn("malformed", self.problem({**spread, "stride": [263]}))

    def memory_of(self, arena: torch.Tensor) -> int:
        """A region with what is in the arena."""
        memory, descriptor = region.HOST.reserve(arena.numel())
        self.addCleanup(os.close, descriptor)
        memory.copy_(arena)
        return descriptor

    def test_other_forms_are_wrong(self) -> None:
        forms: list[tuple[dict[str, Any], str]] = [
            ({"dtype": "int32"}, "dtype"), ({"shape": [4, 10], "stride": [10, 1]}, "shape"),
            ({"stride": [0]}, "value"), ({"stride": [2]}, "value"), ({"offset": 1024}, "value"),
            ({"shape": [0], "stride": [1], "nbytes": 0}, "shape"),
            ({"t": "list", "items": []}, "structure"), ({"t": "value", "value": 7}, "structure"),
        ]  # fmt: skip
        for change, expected in forms:
            with self.subTest(str(change)):
                self.assertIn(f"call 0: output: {expected}", self.problem(self.changed(**change)))

    def test_the_number_of_nodes_is_limited(self) -> None:
        wide = {"t": "list", "items": [{"t": "value", "value": 1}] * (region.NODES_MAX + 1)}
        self.assertIn("malformed outputs: ", self.problem(wide))
        deep: Any = self.changed()
        for _ in range(region.DEPTH_MAX + 2):
            deep = {"t": "list", "items": [deep]}
        self.assertIn("malformed outputs: ", self.problem(deep))

    def test_nothing_is_copied_that_is_larger_than_outputs_are(self) -> None:
        huge = self.changed(shape=[1 << 38], stride=[0], nbytes=1 << 40)
        self.assertIn("more bytes than allowed", self.problem(huge))
        all_of_it = self.changed(
            dtype="uint8", shape=[1 << 16], stride=[1], nbytes=1 << 16, offset=0
        )
        many = {"t": "list", "items": [all_of_it] * 1000}
        self.assertIn("more bytes than allowed", self.problem(many))

    def test_the_smallest_change_of_a_place_is_noticed(self) -> None:
        """A contestant may have right outputs elsewhere; only these bytes count."""
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        offset = self.good["offset"]
        for number in range(50):
            at = offset + 4 * rng.randrange(40) + 3  # Sign and exponent of one element.
            with self.subTest(f"seed {seed}, number {number}"):
                self.arena[at] ^= 0x80
                self.assertIn("call 0: output: value", self.problem(self.changed()))
                self.arena[at] ^= 0x80
        self.assertEqual(self.problem(self.changed()), "")


class HostilePlaces(unittest.TestCase):
    """Where the reference works in place, the inputs' memory is counted on behind the arena."""

    def setUp(self) -> None:
        self.rig = Rig(ALL_IN_PLACE, calls=2)
        self.told = self.rig.batch(lambda x: x.mul_(2).t())
        self.offsets = [place[1] for place in self.told["places"]]
        shared = self.rig.fresh.processes["own"]
        assert shared.arena is not None and shared.inputs is not None
        self.between, self.end = shared.arena.numel(), shared.arena.numel() + shared.inputs.numel()

    def problem(self, offset: int) -> Any:
        places = [self.told["places"][0], [0, offset]]
        return self.rig.verify({**self.told, "places": places}, [1])

    def test_outputs_are_found_in_their_calls_inputs(self) -> None:
        stride = self.rig.fresh.stride
        self.assertEqual(self.offsets, [self.between, self.between + stride])
        self.assertEqual(self.problem(self.offsets[1]), "")

    def test_those_of_another_call_are_wrong(self) -> None:
        self.assertIn("call 1: output: ", self.problem(self.offsets[0]))

    def test_places_across_or_behind_are_refused(self) -> None:
        for offset in (self.between - 4, self.end - 4, self.end, self.end + 512, 2 * self.end):
            with self.subTest(offset):
                self.assertIn("malformed outputs: ", self.problem(offset))

    def test_without_the_reference_in_place_a_view_is_copied(self) -> None:
        task = ALL_IN_PLACE.replace("x.mul_(2).t()", "x.t().contiguous()")
        rig = Rig(task, calls=2)
        told = rig.batch(lambda x: x.t())
        self.assertTrue(all(offset < self.between for _, offset in told["places"]))
        self.assertEqual(rig.verify(told, [1, 0]), "")
        told["places"] = [[0, self.between]] * 2
        self.assertIn("malformed", rig.verify(told, [1]))


def with_offset(told: Any, call: int) -> Any:
    """The form of a call's only output, with where it lies."""
    number, offset = told["places"][call]
    return {**told["forms"][number], "offset": offset}


def offsets_in(tree: Any) -> list[Any]:
    """Those of a tree, by their order."""
    if not isinstance(tree, dict):
        return []
    inner = [offset for item in tree.get("items", []) for offset in offsets_in(item)]
    return [tree["offset"], *inner] if "offset" in tree else inner


if __name__ == "__main__":
    unittest.main()
