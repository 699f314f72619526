# SPDX-License-Identifier: Apache-2.0
"""`task list --json` and `task export --harbor`, judged through a real service."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import tomllib
import unittest
from pathlib import Path

from program import BAD_INPUT, HONEST, MUSACODER, InFolder, run

TASK = "reduction/row_sum"
UNSUPPORTED = """
import torch, warp

@warp.kernel
def kernel(x: warp.array(dtype=float)):
    x[warp.tid()] = 0.0

class ModelNew(torch.nn.Module):
    def forward(self, x):
        warp.launch(kernel, dim=1, inputs=[x])
        return x
"""


def judged(task: Path, answer: Path, reward: Path, service: str) -> int:
    """The exit code of a task's own test."""
    words = [str(task / "tests/test.sh"), str(answer), str(reward)]
    environment = {**os.environ, "MUSACODER_URL": service}
    return subprocess.run(words, env=environment, capture_output=True, check=False).returncode


class Export(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "harbor"
        done = run("task", "export", "tasks", "--harbor", self.out, "--solutions", HONEST)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.task = self.out / "reduction-row_sum"

    def test_each_task_is_a_folder_with_a_config_and_most_have_a_solution(self) -> None:
        rows = [json.loads(line) for line in run("task", "list", "--json").stdout.splitlines()]
        self.assertEqual(len(list(self.out.iterdir())), len(rows))
        self.assertGreater(len(list(self.out.glob("*/solution/solve.sh"))), 40)
        config = tomllib.loads((self.task / "task.toml").read_text())
        self.assertEqual(config["metadata"]["task"], TASK)
        self.assertEqual(config["verifier"]["environment_mode"], "separate")
        (row,) = (row for row in rows if row["id"] == TASK)
        self.assertIn(row["code"], (self.task / "instruction.md").read_text())

    def test_two_tasks_do_not_share_a_folder(self) -> None:
        prompt = [{"role": "user", "content": "x"}]
        rows = [{"id": name, "prompt": prompt, "reward_model": {"ground_truth": "y"}}
                for name in ("a/b", "a-b")]  # fmt: skip
        suite = self.write("rows.jsonl", "\n".join(map(json.dumps, rows)))
        done = run("task", "export", suite, "--harbor", self.folder / "out")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertEqual(done.stderr, "musacoder: a/b and a-b would be one folder\n")

    def test_the_oracle_has_a_reward_and_an_unscored_answer_none(self) -> None:
        command = [MUSACODER, "serve", "--port", "0", "--backend", "cpu", "--seed", "1"]
        answer, reward = self.folder / "answer.py", self.folder / "logs/reward.json"
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            service = process.stdout.readline().split()[-1]
            subprocess.run([self.task / "solution/solve.sh", answer], check=True)
            self.assertEqual(judged(self.task, answer, reward, service), 0)
            self.assertEqual(json.loads(reward.read_text()), {"reward": 1.0, "passed": 1.0})
            self.assertEqual(judged(self.task, self.folder / "none.py", reward, service), 0)
            self.assertEqual(json.loads(reward.read_text()), {"reward": -1.0, "passed": 0.0})
            answer.write_text(UNSUPPORTED)
            self.assertEqual(judged(self.task, answer, reward, service), 1)
            self.assertFalse(reward.exists())
            process.terminate()

    @unittest.skipUnless(importlib.util.find_spec("harbor"), "the package harbor is not installed")
    def test_harbor_reads_each_task(self) -> None:
        from harbor.models.task.task import Task

        for folder in sorted(self.out.iterdir()):
            with self.subTest(folder.name):
                self.assertTrue(Task.is_valid_dir(folder))
                task = Task(folder)
                self.assertEqual(task.name, f"musacoder/{folder.name}")
                self.assertEqual(task.config.verifier.environment_mode.value, "separate")


if __name__ == "__main__":
    unittest.main()
