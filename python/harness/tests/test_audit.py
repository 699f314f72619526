# SPDX-License-Identifier: Apache-2.0
"""The program that a sanitizer watches, here without one and on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

AUDIT = Path(__file__).resolve().parent.parent / "judge/audit.py"
CANNOT = 3
TASK = """
import torch
batch_size = 8
width = 64
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, 32)
    def forward(self, x):
        return self.linear(x)
def get_inputs():
    return [torch.rand(batch_size, width)]
def get_init_inputs():
    return [width]
"""
CANDIDATE = TASK.replace("class Model", "class ModelNew")


def audit(task: str, source: str) -> subprocess.CompletedProcess[str]:
    question = {
        "task": task,
        "source": source,
        "artifacts": {},
        "seed": 5,
        "device": "cpu",
        "aten": "",
    }
    question |= {"mode": "train", "precision": "task"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "question.json"
        path.write_text(json.dumps(question))
        command = [sys.executable, "-B", str(AUDIT), str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


class AuditTest(unittest.TestCase):
    def test_a_candidate_runs_at_every_shape(self) -> None:
        done = audit(TASK, CANDIDATE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "audit: done, 3 of 3")

    def test_a_shape_that_the_candidate_refuses_is_passed_over(self) -> None:
        refusal = "        assert x.shape[0] != 7\n        return self.linear"
        done = audit(TASK, CANDIDATE.replace("        return self.linear", refusal))
        self.assertIn("audit: ragged: AssertionError", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "audit: done, 2 of 3")

    def test_a_candidate_that_does_not_load_runs_nowhere(self) -> None:
        done = audit(TASK, "1 / 0")
        self.assertEqual(
            (done.returncode, done.stdout.splitlines()[-1]), (0, "audit: done, 0 of 3")
        )

    def test_a_task_that_does_not_run_is_no_fault_of_the_candidate(self) -> None:
        done = audit("raise ValueError('no task')", CANDIDATE)
        self.assertEqual(done.returncode, CANNOT)
        self.assertIn("audit: cannot: ValueError: no task", done.stdout)


if __name__ == "__main__":
    unittest.main()
