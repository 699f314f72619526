# SPDX-License-Identifier: Apache-2.0
"""The list of CUDA's functions that the client does not support, from headers."""

from __future__ import annotations

import importlib
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "device/client"))

unsupported = importlib.import_module("unsupported")

HEADER = "\n".join(
    [
        "extern __host__ cudaError_t CUDARTAPI cudaFree(void *devPtr);",
        "CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize);",
        "#define cuMemAlloc cuMemAlloc_v2",
        "#define cudaMemcpy __CUDART_API_PTDS(cudaMemcpy)",
        "#define cuStreamQuery                       __CUDA_API_PTSZ(cuStreamQuery)",
        "#define CUDA_VERSION 13000",
        "static __inline__ cuFloatComplex cuCmulf(cuFloatComplex x, cuFloatComplex y)",
    ]
)


class Unsupported(unittest.TestCase):
    def test_a_declaration_a_version_and_a_form_for_each_thread_are_functions(self) -> None:
        names = {"cudaFree", "cuMemAlloc", "cuMemAlloc_v2", "cudaMemcpy_ptds", "cuStreamQuery_ptsz"}
        self.assertEqual(unsupported.functions_in(HEADER), names)

    def test_the_list_has_the_functions_of_the_headers_and_the_undeclared_ones(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            headers, out = Path(folder) / "include", Path(folder) / "out"
            headers.mkdir()
            out.mkdir()
            (headers / "cuda_runtime_api.h").write_text(HEADER)
            (headers / "musa.h").write_text("MUresult MUSAAPI muInit(unsigned int Flags);")
            (headers / "other.h").write_text("void CUDARTAPI cudaOther(void);")
            unsupported.main(headers, out)
            lines = (out / "unsupported.inc").read_text().splitlines()
        self.assertEqual(lines, sorted(lines))
        self.assertIn("MC_UNSUPPORTED(cudaFree)", lines)
        self.assertIn("MC_UNSUPPORTED(muInit)", lines)
        self.assertIn("MC_UNSUPPORTED(__cudaRegisterHostVar)", lines)
        self.assertNotIn("MC_UNSUPPORTED(cudaOther)", lines)


if __name__ == "__main__":
    unittest.main()
