# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch

from harness.timing import device_speed
from harness.worker import pieces, place, region
from harness.worker.backends import BACKENDS
from harness.worker.cuda_place import CudaPlace

ON_CUDA = CudaPlace(torch.device("cuda", 0), region.HOST, place.digest_by_sums)
# Fails if importing the backends checks for a GPU, as cpp_extension does if CUDA_HOME is set.
IMPORT = """
import torch
def is_available(): raise SystemExit("asked for a GPU")
torch.cuda.is_available = is_available
from harness.worker import backends
from torch.utils import cpp_extension
assert torch.cuda.is_available is is_available and not torch.cuda.is_initialized()
"""


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
    def test_only_a_device_implements_the_devices_operations(self) -> None:
        empty = [name for name in vars(place.Place) if not name.startswith("_")]
        methods = {name for name in empty if callable(getattr(place.Place, name))}
        self.assertEqual(methods, {name for name in vars(CudaPlace) if name in methods})

    def test_no_device_is_opened_before_the_forks(self) -> None:
        root = Path(__file__).resolve().parents[3]
        environment = {**os.environ, "CUDA_HOME": "/nowhere"}
        command = [sys.executable, "-c", IMPORT]
        subprocess.run(command, cwd=root / "python", env=environment, check=True)

    def test_each_names_its_device(self) -> None:
        own = {name: backend for name, backend in BACKENDS.items() if name != "musa"}
        found = {name: backend.open_device().type for name, backend in own.items()}
        self.assertEqual(found, {"cpu": "cpu", "cuda": "cuda"})  # The judge's.

    def test_cuda_takes_the_time_between_two_events(self) -> None:
        done: list[str] = []
        with mock.patch("torch.cuda.Event") as event, mock.patch("torch.cuda.synchronize") as wait:
            event().record.side_effect = lambda: done.append("event")
            wait.side_effect = lambda: done.append("wait")
            event().elapsed_time.return_value = 250.0
            seconds = ON_CUDA.seconds(lambda: done.append("work"))
        self.assertEqual((seconds, done), (0.25, ["event", "work", "event", "wait"]))

    def test_the_cpu_runs_recorded_work_unchanged(self) -> None:
        done: list[int] = []
        again = place.HOST_PLACE.captured(lambda: done.append(1))
        again()
        again()
        self.assertEqual(done, [1, 1])


if __name__ == "__main__":
    unittest.main()
