# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import unittest
from unittest import mock

import torch

from harness.worker import pieces, place, region


def digest(value: object) -> str:
    tree, _ = region.pack(value)
    return place.digest_by_sums(tree, region.tensors_of(value))


class DigestBySums(unittest.TestCase):
    def test_tells_every_changed_element(self) -> None:
        data = torch.arange(257, dtype=torch.uint8)
        known = {digest([data])}
        for at in range(data.numel()):
            changed = data.clone()
            changed[at] ^= 1
            known.add(digest([changed]))
        self.assertEqual(len(known), data.numel() + 1)

    def test_tells_exchanged_words(self) -> None:
        self.assertNotEqual(digest([torch.tensor([1, 2])]), digest([torch.tensor([2, 1])]))

    def test_tells_shape_dtype_structure_and_plain_values(self) -> None:
        zeros = torch.zeros(4)
        values = [
            [zeros], (zeros,), {"a": zeros}, [zeros.reshape(2, 2)], [zeros.int()],
            [zeros, 1], [zeros, 2], [zeros, "1"],
        ]  # fmt: skip
        self.assertEqual(len({digest(value) for value in values}), len(values))

    def test_is_the_sum_over_all_pieces(self) -> None:
        long = torch.randint(0, 1 << 30, (5000,), dtype=torch.int32)
        with mock.patch.dict(pieces.SIZES, cpu=512):
            in_pieces = digest([long])
        self.assertEqual(in_pieces, digest([long]))


if __name__ == "__main__":
    unittest.main()
