# SPDX-License-Identifier: Apache-2.0
"""`musacoder import`: modules that others wrote, through the command line."""

from __future__ import annotations

import json
import os
import unittest

from program import InFolder, run

MODULE = """import os
import torch

FILES = open("/proc/self/environ").read()
SEEN = [name for name in os.environ if name.startswith("MC_SECRET")]

class Model(torch.nn.Module):
    def forward(self, x):
        assert not SEEN and "MC_SECRET" not in FILES, f"{SEEN} {os.environ.get('MC_SECRET')}"
        return torch.relu(x) * 2

def get_inputs(): return [torch.rand(4, 5)]
def get_init_inputs(): return []
"""


class Import(InFolder):
    def test_a_module_becomes_a_task_and_reads_no_variable_of_the_user(self) -> None:
        self.write("theirs/scaled.py", MODULE)
        out = self.folder / "imported"
        done = run(
            "import", self.folder / "theirs", "--out", out, env={**os.environ, "MC_SECRET": "7x9"}
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in (out / "import.jsonl").read_text().splitlines()]
        self.assertEqual([row["why"] for row in rows], [""], rows)
        self.assertEqual(len(list((out / "tasks").rglob("*.py"))), 1)
        self.assertNotIn("7x9", (out / "import.jsonl").read_text())


if __name__ == "__main__":
    unittest.main()
