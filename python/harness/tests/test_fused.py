# SPDX-License-Identifier: Apache-2.0
"""The kernels' texts compute what the distributions do: here a C++ compiler builds them."""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch

from harness.judge import distributions
from harness.worker.cuda_fused import Symbol, mapped, text_of

TRANSFORMS = {**distributions.TRANSFORMS, **distributions._SPECIAL, "zeros": distributions._zeros}
FORMS = {
    **{name: lambda x, f=f: f(x).clamp(-1e30, 1e30) for name, f in TRANSFORMS.items()},
    **{
        name + " zeros": lambda x, f=f: f(distributions._zeros(x)) for name, f in TRANSFORMS.items()
    },
}
VALUES = torch.cat(
    [torch.randn(4000), torch.rand(4000), torch.tensor([0.0, -0.0, 1e-40, 3e4, -3e4, 0.125, 2.5])]
)


class Fused(unittest.TestCase):
    def test_a_text_computes_what_the_operators_do(self) -> None:
        loops = [
            f'extern "C" void run{number}(float* at, int count) {{ for (int i = 0; i < count; ++i) '
            f"{{ const double x = at[i]; at[i] = (float)({text_of(form)}); }} }}"
            for number, form in enumerate(FORMS.values())
        ]
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "texts.cc", Path(folder) / "texts.so"
            source.write_text("\n".join(["#include <math.h>", *loops]))
            # Contraction into FMA is off: PyTorch's operators round separately.
            command = [
                "g++",
                "-O1",
                "-ffp-contract=off",
                "-shared",
                "-fPIC",
                "-o",
                str(library),
                str(source),
            ]
            subprocess.run(command, check=True)
            native = ctypes.CDLL(str(library))
            for number, (name, form) in enumerate(FORMS.items()):
                with self.subTest(name):
                    found = VALUES.clone()
                    pointer = ctypes.c_void_p(found.data_ptr())
                    getattr(native, f"run{number}")(pointer, ctypes.c_int(found.numel()))
                    expected = form(VALUES.double()).float()
                    close = torch.allclose(found, expected, rtol=1e-6, atol=0, equal_nan=True)
                    self.assertTrue(close, name)

    def test_the_host_and_small_tensors_are_left_to_the_operators(self) -> None:
        self.assertIsNone(mapped(torch.zeros(1 << 10), distributions._zeros))

    def test_unsupported_operations_are_refused(self) -> None:
        self.assertRaises(TypeError, text_of, torch.sin)  # No distribution uses this operator.
        self.assertRaises(AttributeError, text_of, lambda x: x.sort())
        self.assertEqual((Symbol("x") * math.inf).text, "(x * (1.0 / 0.0))")


if __name__ == "__main__":
    unittest.main()
