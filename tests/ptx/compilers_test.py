# SPDX-License-Identifier: Apache-2.0
"""Runs the output of today's NVIDIA and Triton compilers on the executor of PTX.

The unit tests run modules that are checked in. Here nvcc compiles their sources anew with other
options and for other GPUs, and Triton compiles kernels whose results numpy gives as well. Each part
is skipped where its compiler is missing; $PTX_TEST and $PTX_RUN name the programs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PTX_TEST = os.environ.get("PTX_TEST", str(ROOT / "build/dev/bin/ptx_test"))
PTX_RUN = os.environ.get("PTX_RUN", str(ROOT / "build/dev/bin/ptx_run"))
SOURCES = ROOT / "device/ptx/testdata"
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")

try:
    import numpy as np
    import triton
    import triton_kernels as kernels
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
    HAS_TRITON = True
except ImportError:
    HAS_TRITON = False

# Without optimisation these findings are in functions of CUDA's headers, and so are their lines.
IN_HEADERS = (
    "Faults.ShuffleOfAnAbsentLaneIsFound",
    "Faults.TrapEndsTheLaunch",
    "LongWarps.APartialMaskOfALaterLaneEndsTheLaunch",
)
# Without optimisation tiles read where reserved shared memory is, a register that is lacking here.
IN_RESERVED_MEMORY = ("*.TilesHaveMasksOfTheirOwn/*", "*.ATileNeedsNoOtherOne/*")
# Without optimisation the result of every atomic is copied, hence read.
COPIES_RESULTS = ("Kernels.AnAtomicWithAnUnusedResultAcquiresNothing",)
UNOPTIMISED = IN_HEADERS + IN_RESERVED_MEMORY + COPIES_RESULTS


@unittest.skipUnless(NVCC, "nvcc is not installed")
class CudaCompiler(unittest.TestCase):
    """The unit tests of kernels, with modules that nvcc made in other ways."""

    def run_unit_tests(
        self, *options: str, architecture: str = "compute_80", without: Sequence[str] = ()
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for source in SOURCES.glob("*.cu"):
                shutil.copy(source, folder)
                command = [str(NVCC), "-ptx", "-lineinfo", f"-arch={architecture}", *options]
                command.append(f"-I{ROOT / 'device'}")
                command += [source.name, "-o", source.with_suffix(".ptx").name]
                subprocess.run(command, check=True, cwd=folder, capture_output=True, timeout=300)
                module = Path(folder) / source.with_suffix(".ptx").name
                # Findings have the path that nvcc was given as it stands in the folder.
                module.write_text(re.sub(r'(\.file[^"]*")[^"]*/', r"\1", module.read_text()))
            tests = "Kernels.*:Faults.*:Isa/Features.*:Isa/Matrices.*:Lanes/Warps.*:LongWarps.*"
            tests += "-" + ":".join(without) if without else ""
            ran = subprocess.run(
                [PTX_TEST, f"--gtest_filter={tests}", "--gtest_brief=1"],
                env={**os.environ, "MC_PTX_TESTDATA": folder},
                capture_output=True,
                text=True,
                timeout=600,
            )
        self.assertEqual(ran.returncode, 0, ran.stdout[-4000:])
        self.assertNotIn(" 0 tests from", ran.stdout)

    def test_code_for_hopper(self) -> None:
        self.run_unit_tests(architecture="compute_90")

    def test_code_without_optimisation(self) -> None:
        self.run_unit_tests("-Xcicc", "-O0", without=UNOPTIMISED)

    def test_code_for_debuggers(self) -> None:
        self.run_unit_tests("-G", without=UNOPTIMISED)


@unittest.skipUnless(HAS_TRITON, "Triton or numpy is not installed")
class TritonCompiler(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.random = np.random.default_rng(5)

    def normal(self, *shape: int, dtype: str = "float32") -> Any:
        return self.random.standard_normal(shape).astype(dtype)

    def launch(
        self, name: str, grid: str, arguments: list[Any], stages: int = 3, **constants: int
    ) -> subprocess.CompletedProcess[str]:
        """Compiles a kernel and runs it with arrays, which are changed, and numbers."""
        types, words = {}, []
        function = getattr(kernels, name)
        for parameter, value in zip(function.params, arguments):
            types[parameter.name], word = self.argument(parameter.name, value)
            words.append(word)
        signature = {**types, **{one: "constexpr" for one in constants}}
        aligned = [["tt.divisibility", 16]]
        pointers = {(k,): aligned for k, one in enumerate(types.values()) if one[0] == "*"}
        source = ASTSource(function, signature, constants, pointers)
        target = GPUTarget("cuda", 80, 32)
        built = triton.compile(source, target=target, options={"num_stages": stages})
        module = self.folder / f"{name}.ptx"
        module.write_text(built.asm["ptx"])
        command = [PTX_RUN, str(module), name, "--grid", grid]
        command += ["--block", str(32 * built.metadata.num_warps)]
        command += ["--shared", str(built.metadata.shared), *words, "null:", "null:"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        for parameter, value in zip(function.params, arguments):
            if isinstance(value, np.ndarray):
                path = self.folder / parameter.name
                value[...] = np.fromfile(path, dtype=value.dtype).reshape(value.shape)
        return ran

    def argument(self, name: str, value: Any) -> tuple[str, str]:
        """The type in a signature and the word for ptx_run."""
        if isinstance(value, float):
            return "fp32", f"f32:{value}"
        if isinstance(value, int):
            return "i32", f"i32:{value}"
        kinds = {"float32": "fp32", "float16": "fp16", "int32": "i32", "int8": "i8"}
        value.tofile(self.folder / name)
        return "*" + kinds[str(value.dtype)], f"array:{self.folder / name}"

    def run_clean(self, name: str, grid: str, arguments: list[Any], **options: int) -> None:
        ran = self.launch(name, grid, arguments, **options)
        self.assertEqual((ran.returncode, ran.stdout), (0, ""))

    def assert_near(self, actual: Any, expected: Any, bound: float) -> None:
        self.assertLess(float(np.abs(actual.astype("float64") - expected).max()), bound)

    def test_log_softmax(self) -> None:
        x, y = self.normal(5, 777), self.normal(5, 777)
        self.run_clean("log_softmax", "5", [x, y, 777], BLOCK=1024)
        wide = x.astype("float64")
        shifted = wide - wide.max(1, keepdims=True)
        self.assert_near(y, shifted - np.log(np.exp(shifted).sum(1, keepdims=True)), 1e-5)

    def test_rms_norm_of_halves(self) -> None:
        x, w = self.normal(4, 700, dtype="float16"), self.normal(700)
        y = np.zeros_like(x)
        self.run_clean("rms_norm", "4", [x, w, y, 700, 1e-5], BLOCK=256)
        wide = x.astype("float64")
        scale = 1 / np.sqrt((wide * wide).mean(1, keepdims=True) + 1e-5)
        self.assert_near(y, wide * scale * w, 1e-2)

    def check_matmul(self, dtype: str, bound: float, stages: int) -> None:
        m, n, k = 100, 72, 96
        a, b = self.normal(m, k, dtype=dtype), self.normal(k, n, dtype=dtype)
        c = self.normal(m, n)
        arguments = [a, b, c, m, n, k]
        self.run_clean("matmul", "2,2", arguments, stages=stages, M=64, N=64, K=32)
        exact = a.astype("float64") @ b.astype("float64")
        self.assert_near(c, np.maximum(exact, 0.1 * exact), bound)

    def test_matmul_of_halves_in_stages(self) -> None:
        for stages in (1, 2, 3, 4):
            with self.subTest(stages=stages):
                self.check_matmul("float16", 1e-4, stages)

    def test_matmul_of_tf32(self) -> None:
        self.check_matmul("float32", 0.1, 3)

    def test_matmul_of_bytes(self) -> None:
        a = self.random.integers(-128, 128, (64, 128)).astype("int8")
        b = self.random.integers(-128, 128, (128, 64)).astype("int8")
        c = np.zeros((64, 64), "int32")
        self.run_clean("byte_matmul", "1", [a, b, c, 128], M=64, N=64, K=64)
        self.assertEqual(int(np.abs(c - a.astype("int64") @ b.astype("int64")).max()), 0)

    def test_attention(self) -> None:
        q, k, v, o = (self.normal(2, 128, 64, dtype="float16") for _ in range(4))
        self.run_clean("attention", "2,2", [q, k, v, o, 128, 0.125], D=64, M=64, N=32)
        q64, k64, v64 = (one.astype("float64") for one in (q, k, v))
        part = np.exp(q64 @ k64.transpose(0, 2, 1) * 0.125)
        self.assert_near(o, part / part.sum(-1, keepdims=True) @ v64, 5e-3)

    def test_running_product(self) -> None:
        x = self.random.uniform(0.9, 1.1, (3, 500)).astype("float32")
        y = np.zeros_like(x)
        self.run_clean("running_product", "3", [x, y, 500], BLOCK=512)
        self.assert_near(y, np.cumprod(x.astype("float64"), axis=1), 1e-4)

    def test_sorted_rows(self) -> None:
        x, y = self.normal(3, 128), self.normal(3, 128)
        self.run_clean("sorted_rows", "3", [x, y], BLOCK=128)
        self.assertTrue(np.array_equal(y, -np.sort(-x, axis=1)))

    def test_least_place(self) -> None:
        x, y = self.normal(7, 900), np.zeros(7, "int32")
        self.run_clean("least_place", "7", [x, y, 900], BLOCK=1024)
        self.assertTrue(np.array_equal(y, x.argmin(1)))

    def test_bins_by_atomics(self) -> None:
        x, y = self.random.integers(0, 16, 4096).astype("int32"), np.zeros(16, "int32")
        self.run_clean("bins", "8", [x, y, 4096], BLOCK=512, BINS=16)
        self.assertTrue(np.array_equal(y, np.bincount(x, minlength=16)))

    def test_uniform_numbers(self) -> None:
        y = np.zeros(8192, "float32")
        self.run_clean("uniform", "8", [y, 7, 8192], BLOCK=1024)
        self.assertTrue(0 <= y.min() and y.max() < 1)
        self.assertLess(abs(float(y.mean()) - 0.5), 0.02)
        self.assertGreater(len(np.unique(y)), 8000)

    def test_swapped_tiles(self) -> None:
        x, y = self.normal(50, 70), self.normal(70, 50)
        self.run_clean("transposed", "2,3", [x, y, 50, 70], BLOCK=32)
        self.assertTrue(np.array_equal(y, x.T))

    def test_a_store_without_a_mask_is_found(self) -> None:
        x, y = self.normal(1000), self.normal(1000)
        ran = self.launch("beyond", "1", [x, y, 1000], BLOCK=1024)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stdout, r"^out_of_bounds_write: kernel beyond, triton_kernels.py:\d+,")

    def test_a_sum_without_an_atomic_is_found(self) -> None:
        x, y = self.normal(512), np.zeros(1, "float32")
        ran = self.launch("same_place", "4", [x, y], BLOCK=128)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stdout, r"global_race: kernel same_place, triton_kernels.py:\d+,")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    unittest.main()
