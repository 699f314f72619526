# SPDX-License-Identifier: Apache-2.0
"""Patches of optimized modules, as git takes them."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

from optimize.patch import patch_of


class Patch(unittest.TestCase):
    def test_git_apply_makes_the_module_of_the_original(self) -> None:
        for before in ("import torch\n\nx = 1\n", "x = 1", "a\r\nb\x0cc\n", ""):
            with self.subTest(before), tempfile.TemporaryDirectory() as directory:
                top = Path(directory)
                subprocess.run(["git", "init", "-q", top], check=True)
                original = top / "package/layers/block.py"
                original.parent.mkdir(parents=True)
                original.write_bytes(before.encode())
                module = before + "\n# ---- Kernels\nKERNELS = r'''\n__global__ void f() {}\n'''\n"
                patch = patch_of(original, module)
                self.assertIn("+++ b/package/layers/block.py", patch)
                subprocess.run(
                    ["git", "apply", "-"], input=patch.encode(), cwd=top, check=True
                )  # fmt: skip
                self.assertEqual(original.read_bytes(), module.encode())


if __name__ == "__main__":
    unittest.main()
