# SPDX-License-Identifier: Apache-2.0
"""A candidate process without a device, and the device process that serves it.

The device process has a driver that needs no GPU (device/fakes/cuda_driver.h); the candidate is
PyTorch's own, with libcudart's substitute in place of libcudart. Behaviour that needs kernels is
tested on a device (tests/gpu_test.py).
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import torch

from harness.device.process import GRANULARITY, DeviceProcess
from harness.worker.wire import Question, Refusal

EXECUTOR = os.environ.get("MC_FAKE_EXECUTOR", "")
CLIENT = os.environ.get("MC_CUDART", "")
INVALID_IMAGE, INVALID_FUNCTION = 200, 98  # cudaError_t

CANDIDATE = """
import ctypes, json, os, sys, torch
library, descriptor = sys.argv[1], int(sys.argv[2])
assert ctypes.CDLL(library).mc_device_open(descriptor) == 0
values = torch.arange(6, dtype=torch.float32).cuda()
copy = torch.empty_like(values)
copy.copy_(values)
torch.cuda.synchronize()
def entry_point(name):
    found, result = ctypes.c_void_p(), ctypes.c_int()
    assert ctypes.CDLL(library).cudaGetDriverEntryPointByVersion(
        name, ctypes.byref(found), ctypes.c_uint(12000), ctypes.c_ulonglong(0),
        ctypes.byref(result)) == 0
    return [bool(found.value), result.value]
is_out_of_memory = []
for nbytes in (1 << 42, 5 << 30):  # More than its limit; more than others left.
    try:
        torch.empty(nbytes, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        is_out_of_memory.append(nbytes)
native = ctypes.CDLL(library)
register, unregister = native["__cudaRegisterFatBinary"], native["__cudaUnregisterFatBinary"]
register.restype, unregister.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
wrapper, room = (ctypes.c_uint64 * 3)(), ctypes.create_string_buffer(1024)
modules, functions = [], [ctypes.c_void_p(1), ctypes.c_void_p(2)]
for function in functions:
    modules.append(ctypes.c_void_p(register(wrapper)))
    native["__cudaRegisterFunction"](modules[-1], function, None, b"k", -1, *(None,) * 5)
unregister(modules[0])
attributes = [native.cudaFuncGetAttributes(room, function) for function in functions]
with open("/proc/self/maps") as file:
    maps = {line.split()[-1] for line in file if "/" in line}
print(json.dumps({
    "is_cuda": copy.is_cuda, "device": str(copy.device), "copy": copy.cpu().tolist(),
    "name": torch.cuda.get_device_name(),
    "driver": [path for path in maps if os.path.basename(path).startswith("libcuda.so")],
    "nodes": [path for path in maps if path.startswith("/dev/nvidia")],
    "address": copy.data_ptr(), "is_out_of_memory": is_out_of_memory,
    "attributes": attributes,
    "entry_points": [entry_point(name) for name in (b"cuTensorMapEncodeTiled", b"cuNone")],
}), flush=True)
sys.stdin.read()
"""

LIBRARIES = """
import ctypes, json, os, sys, torch
library, descriptor = sys.argv[1], int(sys.argv[2])
native = ctypes.CDLL(library)
assert native.mc_device_open(descriptor) == 0
left = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).cuda()
right = torch.tensor([[5.0, 6.0, 7.0], [8.0, 9.0, 10.0]]).cuda()
P, I, F = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
dnn, tensor, dropout, graph = P(), P(), P(), P()
done = [native.cudnnCreate(ctypes.byref(dnn)),
        native.cudnnCreateTensorDescriptor(ctypes.byref(tensor)),
        native.cudnnCreateDropoutDescriptor(ctypes.byref(dropout)),
        native.cudnnBackendCreateDescriptor(I(3), ctypes.byref(graph))]
dims = (I * 3)(4, 5, 6)
done += [native.cudnnSetTensorNdDescriptor(tensor, I(0), I(3), dims, dims)]
kind, count, shape, strides = I(7), I(), (I * 5)(), (I * 5)()
at = [ctypes.byref(kind), ctypes.byref(count)]
done += [native.cudnnGetTensorNdDescriptor(tensor, I(5), *at, shape, strides)]
done += [native.cudnnSetDropoutDescriptor(dropout, dnn, F(0.25), P(), ctypes.c_size_t(1),
                                          ctypes.c_ulonglong(2))]
descriptors, back, held = (P * 2)(graph, graph), (P * 2)(graph, graph), ctypes.c_int64()
wanted = ctypes.c_int64(2)
done += [native.cudnnBackendSetAttribute(graph, I(1), I(15), wanted, descriptors)]
done += [native.cudnnBackendGetAttribute(graph, I(1), I(15), wanted, ctypes.byref(held), back)]
sent, got = (ctypes.c_int64 * 2)(11, 12), (ctypes.c_int64 * 4)(0, 0, 7, 7)
done += [native.cudnnBackendSetAttribute(graph, I(1), I(3), wanted, sent)]
done += [native.cudnnBackendGetAttribute(graph, I(1), I(3), ctypes.c_int64(4),
                                         ctypes.byref(held), got)]
one, out = torch.ones(1).cuda(), torch.zeros(1).cuda()
at = P(one.data_ptr())
done += [native.cudnnBatchNormalizationForwardInference(
    dnn, I(1), ctypes.byref(F(10)), ctypes.byref(F(100)), tensor, at, tensor, P(out.data_ptr()),
    tensor, at, at, at, at, ctypes.c_double(1000))]
print(json.dumps({
    "product": (left @ right).cpu().tolist(), "done": done, "count": count.value,
    "shape": list(shape), "held": held.value, "kind": kind.value, "sum": out.item(),
    "got": list(got),
}), flush=True)
sys.stdin.readline()
handle = P()
assert native.cublasCreate_v2(ctypes.byref(handle)) == 0
torch.cuda.synchronize()
real = ctypes.CDLL("libcublas.so.13", mode=os.RTLD_NOLOAD)
real.cublasSsymm_v2(handle, *(I(0),) * 4, *(P(),) * 8)
"""

TIMED = """
import ctypes, json, sys, torch
from harness.candidate import remote_calls
from harness.worker.cuda_place import CudaPlace
library, descriptor = sys.argv[1], int(sys.argv[2])
assert ctypes.CDLL(library).mc_device_open(descriptor) == 0
place = CudaPlace.open_remote()
first = torch.ones(2, 2).cuda()
print(json.dumps({"product": (first @ first).cpu().tolist()}), flush=True)
class Model(torch.nn.Module):
    def forward(self, x):
        return x @ x, x.clone()
for line in sys.stdin:
    with torch.no_grad():
        print(json.dumps(remote_calls.make(Model(), json.loads(line), place)), flush=True)
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

    def candidate(
        self, channel: int, code: str = CANDIDATE
    ) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, CLIENT, str(channel)],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            pass_fds=[channel],
        )  # fmt: skip
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    def test_tensors_are_cudas_and_the_process_has_no_driver(self) -> None:
        _, channel = self.call("open", foreign_kernels=[])
        process, report = self.candidate(channel)
        self.assertTrue(report["is_cuda"])
        self.assertEqual(report["device"], "cuda:0")
        self.assertEqual(report["name"], "fake device")
        self.assertEqual(report["copy"], [0, 1, 2, 3, 4, 5])
        self.assertEqual((report["driver"], report["nodes"]), ([], []))
        self.assertEqual(len(report["is_out_of_memory"]), 2)
        self.assertEqual(report["entry_points"], [[True, 0], [False, 1]])
        # The functions of the unloaded module are gone; the other module's image is not in a file.
        self.assertEqual(report["attributes"], [INVALID_FUNCTION, INVALID_IMAGE])

        used, _ = self.call("used")
        self.assertEqual(used["bytes_to_host"], 6 * 4)

        node = {"t": "tensor", "dtype": "float32", "shape": [6], "nbytes": 24,
                "offset": report["address"], "param": False}  # fmt: skip
        taken, region = self.call("take", outputs={"t": "tuple", "items": [node]}, buffers=[])
        place = taken["outputs"]["items"][0]["offset"]
        values = torch.frombuffer(bytearray(os.pread(region, 24, place)), dtype=torch.float32)
        self.assertEqual(values.tolist(), [0, 1, 2, 3, 4, 5])

        process.communicate()
        self.assertEqual(process.returncode, 0)
        closed, _ = self.call("close")
        self.assertTrue(closed["is_clean"])

    def test_libraries_compute_in_the_device_process(self) -> None:
        _, channel = self.call("open", foreign_kernels=["*"])
        process, report = self.candidate(channel, LIBRARIES)
        self.assertEqual(report["product"], [[21, 24, 27], [47, 54, 61]])
        self.assertEqual(report["done"], [0] * len(report["done"]))
        self.assertEqual((report["count"], report["kind"], report["held"]), (3, 0, 2))
        self.assertEqual(report["shape"], [4, 5, 6, 0, 0])
        self.assertEqual(report["got"], [11, 12, 7, 7])  # Only the existing elements.
        self.assertEqual(report["sum"], 1 + 10 + 100 + 5 + 1000)
        used, _ = self.call("used")
        self.assertEqual((used["unsupported"], used["forbidden"]), ("", ""))

        process.communicate("now one that does not cross\n")
        self.assertEqual(process.returncode, 1)
        used, _ = self.call("used")
        self.assertEqual(used["unsupported"], "libcublas.so.13")
        closed, _ = self.call("close")
        self.assertTrue(closed["is_clean"])

    def test_calls_are_timed_on_inputs_of_their_own(self) -> None:
        _, channel = self.call("open", foreign_kernels=["*"])
        process, report = self.candidate(channel, TIMED)
        self.assertEqual(report["product"], [[2, 2], [2, 2]])
        assert process.stdin is not None and process.stdout is not None
        address = self.call("time_prepare", calls=3, inputs_bytes=512, outputs_bytes=1 << 20)[0]
        node = {"t": "tensor", "dtype": "float32", "shape": [2, 2], "nbytes": 16, "offset": 0,
                "param": False, "region_bytes": 1 << 21}  # fmt: skip
        inputs = {"t": "list", "items": [node]}
        for is_itemised in (False, True):
            region = os.memfd_create("inputs")
            os.ftruncate(region, 1 << 21)
            for number in range(3):
                os.pwrite(region, (torch.eye(2) * (number + 2)).numpy().tobytes(), 512 * number)
            self.call("time_start", region, calls=3, nbytes=1 << 21, is_gated=not is_itemised,
                      is_itemised=is_itemised)  # fmt: skip
            body = {"calls": 3, "inputs": inputs, "stride": 512, "written": [], **address,
                    "frees_cache": is_itemised}  # fmt: skip
            process.stdin.write(json.dumps(body) + "\n")
            process.stdin.flush()
            tree = json.loads(process.stdout.readline())
            timed, _ = self.call("time_finish")
            self.assertEqual((len(timed["us"]), timed["long_calls"]), (3, 0))
            self.assertGreaterEqual(timed["memory_bytes"], GRANULARITY)
            self.assertEqual(timed["memory_bytes"] % GRANULARITY, 0)
            # A busy machine may take longer to queue a call than the gate waits.
            self.assertLessEqual(timed["queued_whole"], 0 if is_itemised else 3)
            for number in (1, 2):
                taken, copied = self.call("time_take", call=number, outputs=tree)
                product, copy = (
                    list(struct.unpack("4f", os.pread(copied, 16, one["offset"])))
                    for one in taken["outputs"]["items"][0]["items"]
                )
                self.assertEqual(product, [(number + 2) ** 2, 0, 0, (number + 2) ** 2])
                self.assertEqual(copy, [number + 2, 0, 0, number + 2])
        launches = {one["name"]: one["launches"] for one in timed["kernels"]}
        self.assertEqual(launches, {"cublasSgemm_v2": 3, "[memcpy]": 3})
        self.assertEqual(self.call("used")[0]["unsupported"], "")
        process.communicate()
        self.assertTrue(self.call("close")[0]["is_clean"])

    def test_the_channel_keeps_its_length(self) -> None:
        _, channel = self.call("open", foreign_kernels=[])
        for length in (0, 1 << 12, 1 << 30):
            self.assertRaises(PermissionError, os.ftruncate, channel, length)
        self.assertTrue(self.call("close")[0]["is_clean"])

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
