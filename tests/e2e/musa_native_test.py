# SPDX-License-Identifier: Apache-2.0
"""The MUSA backend as far as it goes without MUSA: `musacoder prepare --architecture mp_31`.

A stand-in for mcc compiles (tests/stand_ins/mcc.py), and the device process that this builds runs
over a driver that needs no GPU. Runs the program named by $MUSACODER; needs nvcc.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from program import MUSACODER, ROOT, run

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/stand_ins")]
import musa as stand_in  # noqa: E402

TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs(): return [torch.rand(64, 96)]
def get_init_inputs(): return []
"""
CANDIDATE = """import torch, torch_musa
from torch_musa.utils.musa_extension import load_inline

SOURCE = r'''
#include <musa_runtime.h>
#include "torch_musa/csrc/core/MUSAStream.h"
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.is_privateuseone(), "x must be on MUSA");
  auto y = torch::empty_like(x);
  const int n = x.numel();
  twice<<<(n + 255) / 256, 256, 0, c10::musa::getCurrentMUSAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
'''
if torch.device("musa").type == "musa" and torch.zeros(1, device="musa:0").is_musa:
    ext = load_inline(
        name="twice", cpp_sources="torch::Tensor run(torch::Tensor x);", musa_sources=SOURCE,
        functions=["run"], extra_musa_cflags=["-O3", "-mtgpu", "--offload-arch=mp_31"])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.run(x)
"""
# The fake driver has a kernel of this name.
KERNEL = """#include <musa_runtime.h>
extern "C" __global__ void add_one(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
extern "C" int run(float* values, int n) {
  float* x = nullptr;
  if (musaMalloc((void**)&x, n * sizeof(float)) != musaSuccess) return 1;
  musaMemcpy(x, values, n * sizeof(float), musaMemcpyHostToDevice);
  add_one<<<1, 32>>>(x, n);
  if (musaGetLastError() != musaSuccess) return 2;
  musaMemcpy(values, x, n * sizeof(float), musaMemcpyDeviceToHost);
  return musaFree(x);
}
"""
CLIENT = """import ctypes, json, sys
client, library, channel = sys.argv[1:]
assert ctypes.CDLL(client).mc_device_open(int(channel)) == 0
values = (ctypes.c_float * 4)(1, 2, 3, 4)
print(json.dumps([ctypes.CDLL(library).run(values, 4), list(values)]))
"""
MUSA_FLAGS = ["-x", "musa", "--offload-arch=mp_31", "-std=c++17", "-fPIC", "-c"]


@unittest.skipUnless(stand_in.toolkit(), "needs nvcc")
class MusaNativeTest(unittest.TestCase):
    folder: Path
    environment: dict[str, str]
    verdicts: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.environment = {**os.environ, **stand_in.build(cls.folder, MUSACODER)}
        cls.environment["MC_CACHE_DIR"] = str(cls.folder / "cache")
        cls.verdicts = cls.prepare(
            {
                "right": CANDIDATE,
                "typo": CANDIDATE.replace("const int n", "musaMaloc(); const int n"),
                "vendor": CANDIDATE.replace("const int n", "mublasSgemm(0); const int n"),
            }
        )

    @classmethod
    def prepare(cls, candidates: dict[str, str]) -> dict[str, Any]:
        """The verdicts of those that are not to be measured."""
        (cls.folder / "task.py").write_text(TASK)
        for name, text in candidates.items():
            (cls.folder / f"{name}.py").write_text(text)
        command = [MUSACODER, "prepare", "--architecture", "mp_31", "--dialect", "musa", "--task",
                   str(cls.folder / "task.py"), "--out", str(cls.folder / "out"), "--json",
                   "--compile-timeout", "900"]  # fmt: skip
        for name in candidates:
            command += ["--candidate", str(cls.folder / f"{name}.py")]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=1500, env=cls.environment
        )
        assert done.returncode == 0, done.stderr
        lines = map(json.loads, done.stdout.splitlines())
        return {Path(line["verdict"]["candidate"]).stem: line for line in lines}

    def mcc(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in self.environment.items() if k != "CC"}
        command = [str(self.folder / "musa/bin/mcc"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def test_the_compiler_gets_the_source_of_musa(self) -> None:
        (prepared,) = (self.folder / "out").glob("*.prepared")
        _, body, library = prepared.read_bytes().split(b"\n", 2)
        (artifact,) = json.loads(body)["artifacts"]
        self.assertEqual(json.loads(body)["target"]["architecture"], "mp_31")
        self.assertEqual(len(library), artifact["bytes"])
        names = (b"__musaRegisterFatBinary", b"musaLaunchKernel", b"cudaLaunchKernel")
        self.assertEqual([name in library for name in names], [True, True, False])
        self.assertIn(b"__CLANG_OFFLOAD_BUNDLE__", library)
        self.assertIn(b"musa-mtgpu-mt-musa--mp_31", library)

    def test_what_is_wrong_is_told_in_the_candidates_own_words(self) -> None:
        kinds = {name: one["verdict"]["outcome"]["kind"] for name, one in self.verdicts.items()}
        expected = {"typo": "compile", "vendor": "illegal"}
        self.assertEqual(kinds, expected, self.verdicts.get("right"))
        for name in kinds:
            note = "MUSA dialect (mp_31), compiled by mcc; no device took part"
            self.assertIn(note, self.verdicts[name]["feedback"])
        (typo,) = self.verdicts["typo"]["verdict"]["outcome"]["diagnostics"]
        self.assertIn("musaMaloc", typo["message"])
        self.assertEqual(typo["location"]["line"], 14)
        (vendor,) = self.verdicts["vendor"]["verdict"]["outcome"]["findings"]
        self.assertIn("mublasSgemm", vendor["message"] + vendor["location"]["excerpt"])

    def test_nothing_is_measured_without_a_device(self) -> None:
        options = ["--backend", "musa", "--dialect", "musa"]
        files = ["--task", str(self.folder / "task.py"), "-c", str(self.folder / "right.py")]
        done = run("eval", *options, *files, env=self.environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no MUSA device answers", done.stderr)

    def test_the_stand_in_refuses_what_mcc_does(self) -> None:
        source = self.folder / "kernel.mu"
        source.write_text(KERNEL)
        end = [str(source), "-o", str(self.folder / "refused.o")]
        for wrong in (["-std=c++17"], ["-ccbin=g++"], ["--expt-relaxed-constexpr"],
                      ["-gencode=arch=compute_90,code=sm_90"], ["-march=native"]):  # fmt: skip
            self.assertNotEqual(self.mcc(*MUSA_FLAGS, *wrong, *end).returncode, 0, wrong)
        for missing in ("--offload-arch=mp_31", "-std=c++17"):
            flags = [flag for flag in MUSA_FLAGS if flag != missing]
            self.assertNotEqual(self.mcc(*flags, *end).returncode, 0, missing)

    def test_a_kernel_is_launched_by_the_device_process(self) -> None:
        from harness.device.process import DeviceProcess
        from harness.worker.wire import Question

        (built,) = (self.folder / "cache/musa").glob("*/executor.so")
        library = self.build_kernel()
        for name in ("musa", "musart"):
            ctypes.CDLL(str(self.folder / f"musa/lib/lib{name}.so"))
        ctypes.CDLL(str(self.build_driver(built.parent)), mode=ctypes.RTLD_GLOBAL)
        device = DeviceProcess(str(built), ("torch", "no file"))
        opened = device.answer(Question({"op": "open", "foreign_kernels": []}))
        device.answer(Question({"op": "allow", "files": {str(library): str(library)}}))
        names = [path.name for path in built.parent.glob("libmusa*")]
        self.assertEqual(sorted(names), ["libmusa.so.5", "libmusart.so.5"])
        environment = {**os.environ, "LD_LIBRARY_PATH": str(built.parent),
                       "LD_PRELOAD": ":".join(names)}  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, str(built.parent / "client.so"), str(library),
             str(opened.descriptors[0])],
            capture_output=True, text=True, env=environment, pass_fds=opened.descriptors,
        )  # fmt: skip
        self.assertEqual(done.stderr, "")
        self.assertEqual(json.loads(done.stdout), [0, [2, 3, 4, 5]])
        used = device.answer(Question({"op": "used"})).body
        self.assertEqual((used["launches"], used["launches_own"], used["unsupported"]), (1, 1, ""))
        self.assertTrue(device.answer(Question({"op": "close"})).body["is_clean"])

    def build_kernel(self) -> Path:
        source, built = self.folder / "kernel.mu", self.folder / "kernel.o"
        source.write_text(KERNEL)
        done = self.mcc(*MUSA_FLAGS, str(source), "-o", str(built))
        self.assertEqual(done.returncode, 0, done.stderr)
        library = self.folder / "libkernel.so"
        link = ["g++", "-shared", str(built), f"-L{self.folder / 'musa/lib'}", "-lmusart"]
        subprocess.run([*link, "-o", str(library)], check=True)
        return library

    def build_driver(self, built: Path) -> Path:
        """device/fakes under the names of MUSA. The process's own kernels are not launched."""
        driver, runtime = self.folder / "libfake_driver.so", self.folder / "runtime.cc"
        listed = subprocess.run(
            ["nm", "-D", "--undefined-only", "--format=posix", str(built / "executor.so")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        wanted = re.findall(r"^(?:__)?musa[A-Z]\w*", listed.stdout, re.MULTILINE)
        self.assertIn("__musaRegisterFatBinary", wanted)
        functions = [f"void* {name}() {{ static int any; return &any; }}\n" for name in wanted]
        runtime.write_text('extern "C" {\n' + "".join(functions) + "}\n")
        names, device = built / "names", ROOT / "device"
        command = ["g++", "-std=c++20", "-fPIC", "-shared", "-include", str(names / "names.h"),
                   f"-I{names}", f"-I{device}", "-isystem", str(self.folder / "musa/include"),
                   str(device / "fakes/cuda_driver.cc"), str(runtime), "-o",
                   str(driver)]  # fmt: skip
        subprocess.run(command, check=True)
        return driver


if __name__ == "__main__":
    unittest.main()
