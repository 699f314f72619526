# SPDX-License-Identifier: Apache-2.0
"""A candidate process without a device, and the device process that serves it.

The device process has a driver that needs no GPU (device/fakes/cuda_driver.h); the candidate
is PyTorch's own, with libcudart's substitute in place of libcudart. What only kernels can do is
shown on a device (tests/gpu_test.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import torch

from harness.device.process import DeviceProcess
from harness.worker.wire import Question, Refusal

EXECUTOR = os.environ.get("MC_FAKE_EXECUTOR", "")
CLIENT = os.environ.get("MC_CUDART", "")

CANDIDATE = """
import ctypes, json, os, sys, torch
library, descriptor = sys.argv[1], int(sys.argv[2])
assert ctypes.CDLL(library).mc_device_open(descriptor) == 0
values = torch.arange(6, dtype=torch.float32).cuda()
copy = torch.empty_like(values)
copy.copy_(values)
torch.cuda.synchronize()
with open("/proc/self/maps") as file:
    maps = {line.split()[-1] for line in file if "/" in line}
print(json.dumps({
    "is_cuda": copy.is_cuda, "device": str(copy.device), "copy": copy.cpu().tolist(),
    "name": torch.cuda.get_device_name(),
    "driver": [path for path in maps if os.path.basename(path).startswith("libcuda.so")],
    "nodes": [path for path in maps if path.startswith("/dev/nvidia")],
    "address": copy.data_ptr(),
}), flush=True)
sys.stdin.read()
"""


@unittest.skipUnless(EXECUTOR and CLIENT and torch.version.cuda, "needs PyTorch for CUDA")
class DeviceProcessTest(unittest.TestCase):
    def setUp(self) -> None:
        self.device = DeviceProcess(EXECUTOR)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in ("libcudart.so.13", "libcuda.so.1"):
            (Path(folder.name) / name).symlink_to(CLIENT)
        self.environment = {
            **os.environ,
            "LD_LIBRARY_PATH": folder.name,
            "LD_PRELOAD": "libcudart.so.13:libcuda.so.1",
            "CUDA_VISIBLE_DEVICES": "0",
        }

    def call(self, operation: str, *descriptors: int, **body: Any) -> tuple[dict[str, Any], int]:
        question = Question({"op": operation, **body}, list(descriptors))
        answer = self.device.answer(question)
        return answer.body, answer.descriptors[0] if answer.descriptors else -1

    def candidate(self, channel: int) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        process = subprocess.Popen(
            [sys.executable, "-c", CANDIDATE, CLIENT, str(channel)],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            pass_fds=[channel],
        )  # fmt: skip
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    def test_tensors_are_cudas_and_the_process_has_no_driver(self) -> None:
        _, channel = self.call("open", foreign_kernels=[])
        process, said = self.candidate(channel)
        self.assertTrue(said["is_cuda"])
        self.assertEqual(said["device"], "cuda:0")
        self.assertEqual(said["name"], "fake device")
        self.assertEqual(said["copy"], [0, 1, 2, 3, 4, 5])
        self.assertEqual((said["driver"], said["nodes"]), ([], []))

        used, _ = self.call("used")
        self.assertEqual(used["bytes_to_host"], 6 * 4)

        node = {"t": "tensor", "dtype": "float32", "shape": [6], "nbytes": 24,
                "offset": said["address"], "param": False}  # fmt: skip
        taken, region = self.call("take", outputs={"t": "tuple", "items": [node]}, buffers=[])
        place = taken["outputs"]["items"][0]["offset"]
        values = torch.frombuffer(bytearray(os.pread(region, 24, place)), dtype=torch.float32)
        self.assertEqual(values.tolist(), [0, 1, 2, 3, 4, 5])

        process.communicate()
        self.assertEqual(process.returncode, 0)
        closed, _ = self.call("close")
        self.assertTrue(closed["is_clean"])

    def test_outputs_are_refused_that_are_not_on_the_device(self) -> None:
        self.call("open", foreign_kernels=[])
        here = torch.ones(4)
        for node in (
            {"t": "tensor", "nbytes": 16, "offset": here.data_ptr()},
            {"t": "tensor", "nbytes": -1, "offset": 0},
            {"t": "tensor", "nbytes": 1 << 62, "offset": 0},
            {"t": "tensor"},
            {"t": "list", "items": 5},
            "text",
        ):
            with self.assertRaises(Refusal):
                self.call("take", outputs=node, buffers=[])
        self.call("close")


if __name__ == "__main__":
    unittest.main()
