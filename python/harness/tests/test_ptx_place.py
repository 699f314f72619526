# SPDX-License-Identifier: Apache-2.0
"""The judge's regions for the ptx device, and the extents with which the device maps them."""

import os
import unittest

import torch

from harness.worker import region
from harness.worker.cuda_memory import ALIGNMENT, EMPTY_BYTES
from harness.worker.ptx_place import JudgeMemory


class Regions(unittest.TestCase):
    def test_tensors_come_back_as_they_were(self) -> None:
        given = [torch.arange(5), torch.rand(3, 4).t(), torch.empty(0), torch.tensor(7.0)]
        tree, descriptor = region.pack(given, JudgeMemory())
        self.addCleanup(os.close, descriptor)
        found = region.unpack(tree, region.Mapped(descriptor))
        for one, other in zip(given, found, strict=True):
            self.assertEqual(one.stride(), other.stride())
            self.assertTrue(torch.equal(one, other))

    def test_each_tensor_is_aligned_as_on_a_device_and_alone(self) -> None:
        tree, descriptor = region.pack([torch.rand(3), torch.rand(300)], JudgeMemory())
        self.addCleanup(os.close, descriptor)
        first, second = tree["items"]
        self.assertEqual((first["offset"] % ALIGNMENT, second["offset"] % ALIGNMENT), (0, 0))
        self.assertGreaterEqual(second["offset"], first["offset"] + region.extent_of(first))
        self.assertEqual(os.fstat(descriptor).st_size, first["region_bytes"])

    def test_a_region_of_no_tensors_has_the_size_that_the_device_process_maps(self) -> None:
        _, descriptor = region.pack([1, 2], JudgeMemory())
        self.addCleanup(os.close, descriptor)
        self.assertEqual(os.fstat(descriptor).st_size, EMPTY_BYTES)


class Extents(unittest.TestCase):
    def test_are_the_bytes_from_the_first_to_the_last_element(self) -> None:
        for tensor, expected in (
            (torch.rand(3, 4), 48),
            (torch.rand(3, 4)[:, ::2], 4 * 11),
            (torch.empty(0, 4), 0),
            (torch.rand(1).expand(6), 4),
        ):
            tree, descriptor = region.pack([tensor], JudgeMemory())
            os.close(descriptor)
            self.assertEqual(region.extent_of(tree["items"][0]), expected)


if __name__ == "__main__":
    unittest.main()
