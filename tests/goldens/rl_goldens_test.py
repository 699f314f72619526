# SPDX-License-Identifier: Apache-2.0
"""The goldens of src/rl are, byte for byte, what their script writes."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parent / "rl_goldens.py"


@unittest.skipUnless(importlib.util.find_spec("numpy"), "needs NumPy")
class Goldens(unittest.TestCase):
    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_are_what_the_script_writes(self) -> None:
        checked = self.run_script("--check")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_a_changed_one_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_script(folder).returncode, 0)
            changed = pathlib.Path(folder) / "kl.json"
            changed.write_text(changed.read_text().replace("0.5", "0.6", 1))
            checked = self.run_script("--check", folder)
            self.assertEqual(checked.returncode, 1)
            self.assertEqual(checked.stdout.split(": ")[1].strip(), "kl.json")


if __name__ == "__main__":
    unittest.main()
