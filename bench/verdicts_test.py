# SPDX-License-Identifier: Apache-2.0
"""verdicts.py beside a KernelBench that is made up: no device, no compiler, no torch."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import verdicts

import real_answers  # isort: skip

EVAL = """
import os, time
from dotenv import load_dotenv
from pydantic import BaseModel
class KernelExecResult(BaseModel):
    compiled: bool = False
    correctness: bool = False
    metadata: dict = {}
    runtime: float = -1.0
    ref_runtime: float = -1.0
def build_compile_cache(custom_model_src, verbose, build_dir):
    open(os.path.join(build_dir, "built"), "w").close()
    return True, "", None
def eval_kernel_against_ref(task, answer, build_dir=None, measure_performance=False, **options):
    assert options["num_correct_trials"] == 5 and options["num_perf_trials"] == 100
    if answer.startswith("hang"):
        time.sleep(60)
    if answer.startswith("raise"):
        raise ValueError("CUDA error")
    built = os.path.exists(os.path.join(build_dir, "built"))
    return KernelExecResult(compiled=True, correctness="right" in answer and task == "the task",
                            runtime=2.0, ref_runtime=3.0 if built else 2.0)
"""

# Writes a verdict for each answer.
MUSACODER = """#!/usr/bin/env python3
import json, os, sys
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
assert os.environ["MC_CACHE_DIR"].endswith("cache")
telemetry = {"stages": [{"stage": "compile", "ms": 500}], "compile_cpu_s": 2.0, "full_headers": []}
with open(given["--out"], "w") as out:
    for line in open(given["--candidate"]):
        verdict = {"outcome": {"kind": "pass"}, "telemetry": telemetry}
        out.write(json.dumps({"verdict": verdict}) + "\\n")
"""


class Figures(unittest.TestCase):
    def test_ninety_percent_do_not_exceed_p90(self) -> None:
        self.assertEqual(verdicts.share_at([float(i) for i in range(1, 11)], 0.9), 9.0)
        self.assertEqual(verdicts.share_at([3.0], 0.9), 3.0)
        self.assertEqual(verdicts.figures([]), {"number": 0})
        some = verdicts.figures([1.0, 2.0, 6.0])
        self.assertEqual(some, {"number": 3, "median": 2.0, "p90": 6.0, "sum": 9.0})

    def test_a_source_loses_one_token_and_no_comment(self) -> None:
        text = "int a = 1; // a comment\n/* b */"
        without = {verdicts.without_a_token(text, random.Random(seed)) for seed in range(40)}
        self.assertEqual(
            without,
            {text.replace(token, "", 1) for token in ("int", " = ", "1", ";")}
            - {text.replace(" = ", "", 1)}
            | {text.replace("=", "", 1), text.replace("a", "", 1)},
        )

    def test_the_processor_time_is_that_of_the_whole_tree(self) -> None:
        spin = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))'])"
        done = verdicts.timed_run(
            [sys.executable, "-c", spin + "; print('{}')"], 60, dict(os.environ)
        )
        self.assertGreater(done["cpu_s"], 0.05)


class Sides(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        package = self.folder / "kernelbench/src/kernelbench"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "eval.py").write_text(EVAL)
        answers = {"1/1/0": "right", "1/1/1": "not so", "1/2/0": "raise", "1/2/1": "hang"}
        lines = [
            {"task": f"kernelbench:{key[:3]}", "sample": int(key[4]),
             "response": f"```python\n{code}\n```\n"}
            for key, code in answers.items()
        ]  # fmt: skip
        tasks = [{"level": 1, "problem_id": n, "name": "t", "code": "the task"} for n in (1, 2)]
        real_answers.write_lines(self.folder / "answers.jsonl", lines)
        real_answers.write_lines(self.folder / "level1.jsonl", tasks)
        self.program = self.folder / "musacoder"
        self.program.write_text(MUSACODER)
        self.program.chmod(0o755)

    def run_bench(self, *more: str) -> dict[str, verdicts.Json]:
        words = [str(self.folder), "--out", str(self.folder / "out"), "--number", "4", *more]
        words += ["--musacoder", str(self.program), "--jobs", "2"]
        command = [sys.executable, str(Path(verdicts.__file__)), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        result: dict[str, verdicts.Json] = json.loads((self.folder / "out/result.json").read_text())
        return result

    def test_both_judge_the_same(self) -> None:
        theirs = ("--kernelbench", str(self.folder / "kernelbench"), "--their-workers", "2")
        result = self.run_bench(*theirs, "--their-timeout", "3")
        self.assertEqual(result["MooreEval"]["kinds"], {"pass": 4})
        self.assertEqual(result["MooreEval"]["compile_cpu_s"]["median"], 2.0)
        self.assertEqual(result["MooreEval"]["stages_s"]["compile"]["p90"], 0.5)
        kinds = {"pass": 1, "wrong": 1, "failed": 1, "timeout": 1}
        self.assertEqual(result["KernelBench"]["kinds"], kinds)
        self.assertGreater(result["KernelBench"]["wall_s"], 3)
        lines = verdicts.read_whole_lines(self.folder / "out/theirs.jsonl")
        self.assertEqual([one["speedup"] for one in lines if one["outcome"] == "pass"], [1.5])

    def test_what_was_judged_is_not_judged_again(self) -> None:
        (self.folder / "out").mkdir()
        keys = ("1/1/0", "1/1/1", "1/2/0", "1/2/1")
        line = {"outcome": "pass", "share_s": 30.0, "wall_s": 20.0, "cpu_s": 40.0}
        for key in keys:
            verdicts.add_line(self.folder / "out/theirs.jsonl", {"key": key} | line)
        theirs = ("--kernelbench", str(self.folder / "nowhere"), "--only", "theirs")
        self.assertEqual(self.run_bench(*theirs)["KernelBench"]["per_minute"], 2.0)


if __name__ == "__main__":
    unittest.main()
