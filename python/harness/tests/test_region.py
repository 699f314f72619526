# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import copy
import errno
import os
import random
import unittest
import unittest.mock
from typing import Any

import torch

from harness.worker import region
from harness.worker.wire import Refusal

SAMPLE: Any = [
    torch.arange(7, dtype=torch.int64),
    (torch.randn(3, 5).t(), {"mask": torch.tensor([True, False]), 3: None}),
    torch.tensor(2.5, dtype=torch.bfloat16),
    torch.empty(0, 4),
    torch.randn(2, 2, dtype=torch.complex64).conj(),
    torch.nn.Parameter(torch.ones(2, dtype=torch.float16)),
    [1, True, "text", 0.1, float("inf"), torch.float16, torch.device("cpu")],
]


def _never(*_args: Any, **_kwargs: Any) -> Any:
    raise AssertionError("a candidate's code ran")


class _LazyDict(dict[str, Any]):
    __iter__ = __getitem__ = __len__ = items = values = keys = _never


class _LazyList(list[Any]):
    __iter__ = __getitem__ = __len__ = _never


class _LazyTuple(tuple[Any, ...]):
    __iter__ = __getitem__ = __len__ = _never


class _LazyInt(int):
    __int__ = __index__ = __ge__ = __le__ = __lt__ = __gt__ = _never


class _LazyModel(torch.nn.Module):
    named_buffers = named_parameters = buffers = parameters = state_dict = _never
    named_modules = named_children = _never

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
        self.inner = torch.nn.Module()
        self.inner.register_buffer("b", torch.zeros(3))


def round_trip(value: Any, shared: bool) -> Any:
    tree, descriptor = region.pack(value)
    source = region.Mapped(descriptor) if shared else region.Snapshot(descriptor, 1 << 20)
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

    def test_a_containers_own_code_does_not_run(self) -> None:
        lazy = [_LazyDict(a=1), _LazyList([torch.ones(2)]), _LazyTuple((2.5, _LazyInt(3)))]
        tree = region.form_of(lazy)
        self.assertEqual(len(region.tensors_of(lazy)), 1)
        leaves = [one["items"] for one in tree["items"]]
        self.assertEqual(leaves[0], [["a", {"t": "value", "value": 1}]])
        self.assertEqual(leaves[1][0]["shape"], [2])
        self.assertEqual(leaves[2][1], {"t": "value", "value": 3})

    def test_a_models_own_walk_is_not_asked_for_its_buffers(self) -> None:
        model = _LazyModel()
        self.assertEqual([*region.state_of(model)], ["w", "inner.b"])
        self.assertEqual([*region.buffers_of(model)], ["inner.b"])

    def test_strides_are_kept_by_pack_and_unpack(self) -> None:
        value = [
            torch.randn(3, 5).t(),
            torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
            torch.randn(4, 10)[1:, ::3],
            torch.randn(1, 5).expand(4, 5),
            torch.randn(3, 4, dtype=torch.complex64).t().conj(),
        ]
        for shared in (False, True):
            for one, two in zip(value, round_trip(value, shared)):
                self.assertEqual(one.stride(), two.stride())
                self.assertTrue(torch.equal(one.resolve_conj(), two))

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
        region.unpack(tree, region.Mapped(descriptor)).fill_(1)
        self.assertEqual(private.sum(), 0)
        self.assertEqual(region.unpack(tree, region.Snapshot(descriptor, 1 << 20)).sum(), 4)
        os.close(descriptor)


def spoil(node: Any, rng: random.Random, odd: list[Any]) -> None:
    """Replaces a random part by an odd value."""
    keys: list[Any] = [*node] if isinstance(node, dict) else [*range(len(node))]
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(node[key], (dict, list)) and rng.random() < 0.8:
        spoil(node[key], rng, odd)
    else:
        node[key] = copy.deepcopy(rng.choice(odd))


class InPlaceTest(unittest.TestCase):
    """Values that stay in a region and are read through another mapping."""

    def setUp(self) -> None:
        self.memory, self.descriptor = region.HOST.reserve(1 << 16)
        self.memory.copy_(torch.randint(0, 256, self.memory.shape, dtype=torch.uint8))

    def tearDown(self) -> None:
        os.close(self.descriptor)

    def seen(self, value: Any) -> Any:
        source = region.Mapped(self.descriptor)
        return region.unpack(region.form_of(value), source, offsets=self.offsets_of(value))

    def offsets_of(self, value: Any) -> list[int]:
        begin = self.memory.data_ptr()
        tensors = region.tensors_of(value)
        return [one.data_ptr() - begin if one.numel() else 0 for one in tensors]

    def floats(self, offset: int, shape: list[int], stride: list[int]) -> torch.Tensor:
        return self.memory.view(torch.int32)[offset:].as_strided(shape, stride)

    def test_any_strides_come_back(self) -> None:
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for number in range(300):
            shape = [rng.choice([1, 1, 2, 3, 5]) for _ in range(rng.randint(0, 4))]
            stride = [rng.choice([0, 1, 1, 2, 7, 15, 100]) for _ in shape]
            value = self.floats(rng.randrange(1000), shape, stride)
            with self.subTest(f"seed {seed}, number {number}"):
                (again,) = self.seen([value])
                self.assertEqual((again.stride(), again.dtype), (value.stride(), value.dtype))
                self.assertTrue(torch.equal(again, value))

    def test_transposed_sliced_expanded_and_empty_tensors_come_back(self) -> None:
        whole = self.floats(8, [6, 10], [10, 1])
        value = {
            "t": whole.t(), "slice": whole[1::2, 3:], "row": (whole[2].expand(4, 10),),
            "one": whole[1, 1], "none": whole[:0], "far": torch.empty(0, 3), "n": 4,
        }  # fmt: skip
        again = self.seen(value)
        for name, one in value.items():
            for mine, theirs in zip(region.tensors_of(one), region.tensors_of(again[name])):
                self.assertTrue(torch.equal(mine, theirs), name)
        self.assertEqual(again["n"], 4)

    def test_both_mappings_are_the_same_memory(self) -> None:
        column = self.floats(0, [4, 4], [4, 1]).t()[1]
        again = self.seen(column)
        again.fill_(7)
        self.assertEqual(column.tolist(), [7] * 4)

    def test_a_shifted_tree_describes_the_next_value(self) -> None:
        stride = 512
        tree: Any = {}
        source = region.Mapped(self.descriptor)
        for number in range(3):
            at = number * stride // 4
            first = self.floats(at, [3], [1]).fill_(number)
            second = self.floats(at + 16, [2, 2], [1, 2]).fill_(-number)
            value = [first, ({"b": second},), 5]
            if number == 0:
                tree = region.form_of(value)
                for node, offset in zip(region.tensor_nodes(tree), self.offsets_of(value)):
                    node["offset"] = offset
            again = region.unpack(region.shifted(tree, number * stride), source)
            self.assertEqual(again[0].tolist(), [number] * 3)
            self.assertEqual(again[1][0]["b"].tolist(), [[-number] * 2] * 2)
            self.assertEqual(again[2], 5)
        self.assertEqual(tree["items"][0]["offset"], 0)

    def test_offsets_that_are_missing_or_none_are_refused(self) -> None:
        form = region.form_of([self.floats(0, [3], [1]), self.floats(16, [3], [1])])
        source = region.Mapped(self.descriptor)
        for offsets in ([], [0], [0, None], [0, "64"], [0, -4], [0, 2], [0, 1 << 60]):
            with self.subTest(str(offsets)):
                self.assertRaises(Refusal, region.unpack, form, source, offsets=offsets)
        self.assertEqual(len(region.unpack(form, source, offsets=[0, 64])), 2)


class HostileTreeTest(unittest.TestCase):
    GOOD: Any = {"t": "tensor", "dtype": "float32", "shape": [4], "offset": 4080, "nbytes": 16}

    def setUp(self) -> None:
        _, self.descriptor = region.pack(torch.zeros(4))

    def tearDown(self) -> None:
        os.close(self.descriptor)

    def read(self, tree: Any) -> Any:
        return region.unpack(tree, region.Snapshot(self.descriptor, 1 << 20))

    def test_a_valid_tree_is_read(self) -> None:
        self.assertEqual(self.read(self.GOOD).shape, (4,))

    def test_malformed_trees_are_refused(self) -> None:
        changes: list[dict[str, Any]] = [
            {"t": "pickle"}, {"t": []}, {"dtype": "float31"}, {"shape": [-4]}, {"shape": [4.0]},
            {"shape": "4"}, {"shape": [True] * 4}, {"offset": -16}, {"offset": 4082},
            {"offset": 8192}, {"nbytes": 12}, {"nbytes": "16"}, {"shape": [1] * 65},
            {"shape": [1 << 60, 1 << 60], "nbytes": 1 << 122},
            {"shape": [1 << 30], "nbytes": 1 << 32},
            {"shape": [0, 1 << 40, 1 << 40], "nbytes": 0}, {"shape": [0, 1 << 70], "nbytes": 0},
            {"stride": [-1]}, {"stride": [2]}, {"stride": [1.0]}, {"stride": [True]},
            {"stride": []}, {"stride": [1, 1]}, {"stride": 1}, {"stride": "1"},
            {"stride": [1 << 62]}, {"shape": [1, 4], "stride": [1 << 70, 1]},
            {"region_bytes": "many"}, {"region_bytes": float("nan")}, {"region_bytes": []},
        ]  # fmt: skip
        for change in changes:
            with self.subTest(str(change)):
                self.assertRaises(Refusal, self.read, {**copy.deepcopy(self.GOOD), **change})

    def test_other_malformed_nodes_are_refused(self) -> None:
        nodes: list[Any] = [
            None, 7, [], "tensor", {}, {"t": "value"}, {"t": "value", "value": 1.5},
            {"t": "device", "name": "nonsense"}, {"t": "device", "name": "cuda:" + "9" * 30},
            {"t": "device", "name": None}, {"t": "dtype", "name": "nonsense"},
            {"t": "dtype", "name": "nn"}, {"t": "dtype", "name": []}, {"t": "float", "hex": "0xz"},
            {"t": "float", "hex": "0x1p99999"}, {"t": "list", "items": 7},
            {"t": "list", "items": "ab"}, {"t": "dict", "items": {"ab": 1}},
            {"t": "dict", "items": [["key"]]}, {"t": "dict", "items": [[[], self.GOOD]]},
        ]  # fmt: skip
        for node in nodes:
            with self.subTest(str(node)):
                self.assertRaises(Refusal, self.read, node)

    def test_a_dtype_is_named_without_importing_anything(self) -> None:
        name = "_inductor"  # An attribute of torch that imports a package when read.
        with unittest.mock.patch.object(torch, "__getattr__", side_effect=AssertionError(name)):
            self.assertRaises(Refusal, self.read, {"t": "dtype", "name": name})

    def test_whatever_is_put_into_a_tree_it_is_read_or_refused(self) -> None:
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        good: Any = {"t": "tuple", "items": [{**self.GOOD, "stride": [1]}, {"t": "list", "items": [
            {"t": "dict", "items": [["a", {"t": "float", "hex": "0x1p3"}], [3, self.GOOD]]},
            {"t": "device", "name": "cpu"}, {"t": "dtype", "name": "int8"},
            {"t": "value", "value": "text"}]}]}  # fmt: skip
        odd = [None, True, -1, 0, 1, 3, 1 << 31, 1 << 62, 1 << 63, 1 << 80, 0.5, float("inf"), "",
               "cuda", "list", "tensor", "value", "complex128", "nn", [], [0], [1, 4], [0, 1 << 62],
               [-1], {}, {"t": "list"}]  # fmt: skip
        for number in range(3000):
            tree = copy.deepcopy(good)
            for _ in range(rng.randint(1, 3)):
                spoil(tree, rng, odd)
            with self.subTest(f"seed {seed}, number {number}: {tree}"):
                try:
                    self.read(tree)
                except Refusal as refusal:
                    self.assertEqual(refusal.kind, "protocol")

    def test_bytes_count_as_they_are_once_copied(self) -> None:
        source = region.Snapshot(self.descriptor, 1 << 20)
        wide = {**self.GOOD, "shape": [1 << 38], "stride": [0], "nbytes": 1 << 40}
        self.assertRaises(Refusal, region.unpack, wide, source, 1 << 30)
        pair = {"t": "list", "items": [self.GOOD, {**self.GOOD, "stride": [0]}]}
        self.assertEqual(len(region.unpack(pair, source, 32)), 2)
        self.assertRaises(Refusal, region.unpack, pair, source, 31)

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

    def test_only_data_can_be_packed(self) -> None:
        class Lazy(torch.Tensor):
            pass

        lazy = torch.zeros(2).as_subclass(Lazy)
        for value in (lazy, object(), 1 << 70, torch.zeros(2, device="meta"), {1.5: 1}, 1j):
            with self.subTest(type(value).__name__):
                self.assertRaises(Refusal, region.pack, [value])


class TooLargeTest(unittest.TestCase):
    def test_an_output_that_no_file_holds_is_refused_with_its_size(self) -> None:
        _, tensors = region.describe_named([("", torch.empty(1).expand(1 << 42))])
        failure = OSError(errno.EFBIG, "File too large")
        with unittest.mock.patch("os.ftruncate", side_effect=failure):
            with self.assertRaisesRegex(Refusal, r"shape \[4398046511104\], 17592186044416 bytes"):
                region.lay_out(tensors)


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
