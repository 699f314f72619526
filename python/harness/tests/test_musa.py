# SPDX-License-Identifier: Apache-2.0
"""The MUSA backend's Python without MUSA: names, memory and the recorder's stand-in.

PyTorch's name for the device can be set only once per process, so each test has its own process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
TORCH_MUSA = """
import torch
from types import ModuleType, SimpleNamespace
torch.utils.rename_privateuse1_backend("musa")
torch.backends.mudnn = SimpleNamespace(allow_tf32=True)
module = ModuleType("torch.musa")
module._lazy_init = lambda: None
module.is_initialized = lambda: True
done = []
module.synchronize = lambda: done.append("synchronize")
module.mem_get_info = lambda: (1, 2)
module.current_stream = lambda: SimpleNamespace(musa_stream=7, synchronize=lambda: None)
torch._register_device_module("musa", module)
"""
PLACE = """
import ctypes, json, torch
from harness.worker.backends import BACKENDS
from harness.worker import musa_place
assert not hasattr(torch, "musa")  # Until the fork.
place = BACKENDS["musa"].open_remote()
report = {"device": str(place.device), "key": place.dispatch_key,
        "tf32": torch.backends.mudnn.allow_tf32,
        "stream": place.current_stream()}
place.set_tf32(True)
report["tf32_set"] = torch.backends.mudnn.allow_tf32
place.finish()
report["done"] = torch.musa.synchronize.__globals__["done"]
class Pages:
    address, nbytes = 0x7000, 4096
tensor = place.tensor_of(Pages())
report["tensor"] = [str(tensor.device), tensor.data_ptr(), tensor.numel(), str(tensor.dtype)]
report["held"] = [len(musa_place._held)]
del tensor
report["held"].append(len(musa_place._held))
print(json.dumps(report))
"""
CANDIDATE = """
import torch, torch_musa
from torch_musa.utils.musa_extension import load_inline
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, device="musa"))
        assert self.weight.is_musa and self.weight.device == torch.device("musa:0")
        torch.musa.synchronize()
        self.extension = load_inline(
            name="e", cpp_sources="c", musa_sources="k", functions="f",
            extra_musa_cflags=["-mtgpu"])
"""
RECORD = """
import json, sys
from harness.candidate.record import Recorder
from harness.worker.backends import BACKENDS
from harness.worker.wire import Question
sys.path.insert(0, "python/harness/tests")
from support import empty_region
recorder = Recorder(BACKENDS["musa"].builder)
question = Question({"op": "record", "source": sys.argv[1], "initials": [
    {"t": "list", "items": [{"t": "list", "items": []}, {"t": "dict", "items": []}]}]},
    [empty_region()])
print(json.dumps(recorder.answer(question).body["extensions"]))
"""


class MusaTest(unittest.TestCase):
    def run_python(self, code: str, *arguments: str, package: str | None = None) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            if package is not None:
                Path(folder, "torch_musa.py").write_text(package)
            paths = [str(ROOT / "python"), folder]
            code = f"import sys; sys.path[:0] = {paths!r}\n" + code
            done = subprocess.run(
                [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_place_has_the_names_of_musa(self) -> None:
        report = self.run_python(PLACE, package=TORCH_MUSA)
        self.assertEqual((report["device"], report["key"]), ("musa:0", "PrivateUse1"))
        self.assertEqual((report["tf32"], report["tf32_set"]), (False, True))
        self.assertEqual(report["stream"], 7)
        self.assertEqual(report["done"], ["synchronize"])

    def test_memory_becomes_a_tensor_that_gives_it_back_once(self) -> None:
        report = self.run_python(PLACE, package=TORCH_MUSA)
        self.assertEqual(report["tensor"], ["musa:0", 0x7000, 4096, "torch.uint8"])
        self.assertEqual(report["held"], [1, 0])

    def test_a_recorder_needs_no_torch_musa(self) -> None:
        (extension,) = self.run_python(RECORD, CANDIDATE)
        self.assertEqual(extension["cuda_sources"], ["k"])
        self.assertEqual(extension["extra_cuda_cflags"], ["-mtgpu"])
        self.assertEqual(extension["functions"], {"f": "f"})

    def test_a_keyword_of_cuda_is_none_of_musas(self) -> None:
        source = CANDIDATE.replace("musa_sources", "cuda_sources")
        code = RECORD + "\nassert False"
        with self.assertRaisesRegex(AssertionError, "unexpected keyword argument 'cuda_sources'"):
            self.run_python(code, source)


if __name__ == "__main__":
    unittest.main()
