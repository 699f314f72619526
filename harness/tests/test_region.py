# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import copy
import os
import unittest
from typing import Any

import torch

from harness import region
from harness.wire import Refusal

SAMPLE: Any = [
    torch.arange(7, dtype=torch.int64),
    (torch.randn(3, 5).t(), {"mask": torch.tensor([True, False]), 3: None}),
    torch.tensor(2.5, dtype=torch.bfloat16),
    torch.empty(0, 4),
    torch.randn(2, 2, dtype=torch.complex64).conj(),
    torch.nn.Parameter(torch.ones(2, dtype=torch.float16)),
    [1, True, "text", 0.1, float("inf"), torch.float16, torch.device("cpu")],
]


def round_trip(value: Any, shared: bool) -> Any:
    tree, descriptor = region.pack(value)
    source = region.Mapping(descriptor) if shared else region.Snapshot(descriptor, 1 << 20)
    try:
        return region.unpack(tree, source)
    finally:
        os.close(descriptor)


class RoundTripTest(unittest.TestCase):
    def test_values_come_back_as_they_were(self) -> None:
        for shared in (False, True):
            self._same(SAMPLE, round_trip(SAMPLE, shared))

    def _same(self, one: Any, two: Any) -> None:
        self.assertIs(type(one), type(two))
        if isinstance(one, torch.Tensor):
            self.assertEqual((one.dtype, one.shape), (two.dtype, two.shape))
            self.assertTrue(torch.equal(one.resolve_conj(), two))
        elif isinstance(one, (list, tuple)):
            self.assertEqual(len(one), len(two))
            for first, second in zip(one, two):
                self._same(first, second)
        elif isinstance(one, dict):
            self.assertEqual([*one], [*two])
            self._same([*one.values()], [*two.values()])
        else:
            self.assertEqual(one, two)

    def test_every_dtype_keeps_its_bits(self) -> None:
        for name, dtype in region.DTYPES.items():
            with self.subTest(name):
                bits = torch.arange(dtype.itemsize * 6, dtype=torch.uint8)
                bits = bits % 2 if dtype == torch.bool else bits
                tensor = bits.view(dtype)
                self.assertTrue(region.same_bytes(tensor, round_trip([tensor], False)[0]))

    def test_each_tensor_ends_its_last_page(self) -> None:
        value = [torch.zeros(n, dtype=torch.uint8) for n in (1, 16, 4096, 4097, 5000, 0)]
        tree, descriptor = region.pack(value)
        ends = set()
        for node in tree["items"]:
            slack = -(node["offset"] + node["nbytes"]) % region.PAGE
            self.assertLess(slack, region.ALIGNMENT)
            self.assertEqual(node["offset"] % region.ALIGNMENT, 0)
            ends.add((node["offset"] + node["nbytes"] + slack) // region.PAGE)
        self.assertEqual(len(ends), len(value))
        os.close(descriptor)

    def test_a_region_cannot_shrink(self) -> None:
        _, descriptor = region.pack([torch.zeros(9)])
        self.assertRaises(OSError, os.ftruncate, descriptor, 0)
        os.close(descriptor)

    def test_a_mapping_shares_and_a_snapshot_does_not(self) -> None:
        tree, descriptor = region.pack(torch.zeros(4))
        private = region.unpack(tree, region.Snapshot(descriptor, 1 << 20))
        region.unpack(tree, region.Mapping(descriptor)).fill_(1)
        self.assertEqual(private.sum(), 0)
        self.assertEqual(region.unpack(tree, region.Snapshot(descriptor, 1 << 20)).sum(), 4)
        os.close(descriptor)


class HostileTreeTest(unittest.TestCase):
    GOOD: Any = {"t": "tensor", "dtype": "float32", "shape": [4], "offset": 4080, "nbytes": 16}

    def setUp(self) -> None:
        _, self.descriptor = region.pack(torch.zeros(4))

    def tearDown(self) -> None:
        os.close(self.descriptor)

    def read(self, tree: Any) -> Any:
        return region.unpack(tree, region.Snapshot(self.descriptor, 1 << 20))

    def test_the_good_one_is_read(self) -> None:
        self.assertEqual(self.read(self.GOOD).shape, (4,))

    def test_malformed_trees_are_refused(self) -> None:
        changes: list[dict[str, Any]] = [
            {"t": "pickle"}, {"t": []}, {"dtype": "float31"}, {"shape": [-4]}, {"shape": [4.0]},
            {"shape": "4"}, {"shape": [True] * 4}, {"offset": -16}, {"offset": 4082},
            {"offset": 8192}, {"nbytes": 12}, {"nbytes": "16"}, {"shape": [1] * 65},
            {"shape": [1 << 60, 1 << 60], "nbytes": 1 << 122},
            {"shape": [1 << 30], "nbytes": 1 << 32},
        ]  # fmt: skip
        for change in changes:
            with self.subTest(str(change)):
                self.assertRaises(Refusal, self.read, {**copy.deepcopy(self.GOOD), **change})

    def test_depth_and_number_of_nodes_are_limited(self) -> None:
        deep: Any = {"t": "value", "value": 1}
        for _ in range(region.DEPTH_MAX + 2):
            deep = {"t": "list", "items": [deep]}
        self.assertRaises(Refusal, self.read, deep)
        wide = {"t": "list", "items": [{"t": "value", "value": 1}] * (region.NODES_MAX + 1)}
        self.assertRaises(Refusal, self.read, wide)

    def test_the_same_bytes_many_times_over_are_refused(self) -> None:
        tree = {"t": "list", "items": [self.GOOD] * 10}
        self.assertRaises(Refusal, region.unpack, tree, region.Snapshot(self.descriptor, 100))

    def test_what_is_not_data_cannot_be_packed(self) -> None:
        class Lazy(torch.Tensor):
            pass

        lazy = torch.zeros(2).as_subclass(Lazy)
        for value in (lazy, object(), 1 << 70, torch.zeros(2, device="meta"), {1.5: 1}, 1j):
            with self.subTest(type(value).__name__):
                self.assertRaises(Refusal, region.pack, [value])


class DigestTest(unittest.TestCase):
    def test_every_bit_counts(self) -> None:
        value = torch.arange(100.0)
        tree, descriptor = region.pack(value)
        os.close(descriptor)
        first = region.digest(tree, [value])
        self.assertEqual(first, region.digest(tree, [value.clone()]))
        value[99] = -99
        self.assertNotEqual(first, region.digest(tree, [value]))


if __name__ == "__main__":
    unittest.main()
