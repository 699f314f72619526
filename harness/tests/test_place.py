# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch

from harness.worker import pieces, place, region
from harness.worker.cuda_place import CudaPlace, cuda_files


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
        with mock.patch.object(pieces, "SIZE_ON_CPU", 512):
            in_pieces = digest([long])
        self.assertEqual(in_pieces, digest([long]))


class Backends(unittest.TestCase):
    def test_a_device_does_what_the_cpu_need_not(self) -> None:
        empty = [name for name in vars(place.Place) if not name.startswith("_")]
        methods = {name for name in empty if callable(getattr(place.Place, name))}
        self.assertEqual(methods, {name for name in vars(CudaPlace) if name in methods})

    def test_the_cpu_does_recorded_work_as_it_is(self) -> None:
        done: list[int] = []
        again = place.HOST_PLACE.captured(lambda: done.append(1))
        again()
        again()
        self.assertEqual(done, [1, 1])

    def test_a_process_sees_the_drivers_files_where_there_are_some(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            driver = Path(folder) / "libcuda.so.1"
            driver.touch()
            (Path(folder) / "libother.so").touch()
            found = cuda_files([Path(folder)])
        self.assertIn(driver, found)
        self.assertFalse([path for path in found if path.name == "libother.so"])
        self.assertNotIn(Path("/sys"), place.host_files([Path("/usr/lib")]))


if __name__ == "__main__":
    unittest.main()
