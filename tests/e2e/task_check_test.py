# SPDX-License-Identifier: Apache-2.0
"""The grade of a task: `musacoder task check`, and the reward of a trivial task's verdict."""

from __future__ import annotations

import json
import subprocess
import unittest
from typing import Any

from program import BAD_INPUT, InFolder, run

FOUND = 3

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return FORWARD

def get_inputs():
    return [torch.rand(16, 64)]

def get_init_inputs():
    return []
"""
CONSTANT = TASK.replace("FORWARD", "torch.relu(-x.abs().sum(1, keepdim=True))")
RELU = TASK.replace("FORWARD", "torch.relu(x)")
DOUBLED = TASK.replace("FORWARD", "x * 2")

ANSWER = '''
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_bf16.h>
KERNEL
"""
ext = load_inline(name="ext", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=SOURCE, functions=["run"])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.run(x)
'''
ZEROS = ANSWER.replace(
    "KERNEL",
    """
__global__ void k(float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = 0.0f; }
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0), 1}, x.options());
  k<<<1, 64>>>(y.data_ptr<float>(), x.size(0));
  return y;
}""",
)
COMPUTED = ANSWER.replace(
    "KERNEL",
    """
__global__ void k(const float* x, float* y, int n, int m) {
  int i = threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int j = 0; j < m; ++j) sum += fabsf(x[i * m + j]);
  y[i] = -sum > 0.0f ? -sum : 0.0f;
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0), 1}, x.options());
  k<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
  return y;
}""",
)
FAULTY = COMPUTED.replace(": 0.0f", ": 1.0f")
DOUBLE_BF16 = ANSWER.replace(
    "KERNEL",
    """
__global__ void k(const __nv_bfloat16* x, __nv_bfloat16* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2bfloat16(2.0f * __bfloat162float(x[i]));
}
torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.scalar_type() == torch::kBFloat16, "bfloat16 expected");
  auto y = torch::empty_like(x);
  long n = x.numel();
  k<<<(n + 255) / 256, 256>>>((const __nv_bfloat16*)x.data_ptr<at::BFloat16>(),
                              (__nv_bfloat16*)y.data_ptr<at::BFloat16>(), n);
  return y;
}""",
)


class Case(InFolder):
    def run_program(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return run(*arguments, "--backend", "cpu")

    def judged(self, task: str, answer: str, *options: str) -> dict[str, Any]:
        files = [self.write("task.py", task), self.write("answer.py", answer)]
        done = self.run_program("eval", "--task", files[0], "-c", files[1], "--json", *options)
        self.assertTrue(done.stdout, done.stderr)
        line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return line


class TaskCheck(Case):
    def test_grades_with_reasons(self) -> None:
        names = {"constant.py": CONSTANT, "relu.py": RELU, "doubled.py": DOUBLED, "no.py": "x = ("}
        paths = [str(self.write(name, text)) for name, text in names.items()]
        done = self.run_program("task", "check", "--json", *paths)
        self.assertEqual(done.returncode, FOUND, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["task"] for line in lines], paths)
        grades = [line["grade"] for line in lines]
        self.assertEqual(grades, ["trivial", "weak", "good", "invalid"])
        self.assertIn("zeros", lines[0]["reasons"][0])
        self.assertIn("a copy of input[0]", lines[1]["reasons"][0])
        self.assertEqual(lines[2]["reasons"], [])

    def test_a_table_for_people(self) -> None:
        path = self.write("doubled.py", DOUBLED)
        done = self.run_program("task", "check", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout.splitlines()[1], r"doubled\.py +good +native$")
        self.assertEqual(done.stdout.splitlines()[-1], "1 task: 1 good")

    def test_a_file_that_is_not_there(self) -> None:
        done = self.run_program("task", "check", self.folder / "none.py")
        self.assertEqual(done.returncode, BAD_INPUT)


class TrivialTask(Case):
    def test_an_answer_that_reads_nothing_is_illegal_and_earns_nothing(self) -> None:
        line = self.judged(CONSTANT, ZEROS)
        self.assertIsNone(line["reward"])
        outcome = line["verdict"]["outcome"]
        self.assertEqual(outcome["kind"], "illegal")
        self.assertEqual(outcome["findings"][0]["rule"], "run.constant_answer")

    def test_an_answer_that_computes_passes_and_earns_nothing(self) -> None:
        line = self.judged(CONSTANT, COMPUTED)
        self.assertIsNone(line["reward"])
        self.assertEqual(line["verdict"]["outcome"]["kind"], "pass")
        self.assertEqual(line["verdict"]["task_grade"]["grade"], "trivial")
        self.assertIn("zeros", line["verdict"]["task_grade"]["reasons"][0])

    def test_an_answer_that_is_wrong_is_charged(self) -> None:
        line = self.judged(CONSTANT, FAULTY)
        self.assertEqual(line["reward"], -1)
        self.assertEqual(line["verdict"]["outcome"]["kind"], "wrong")


class Protocol(Case):
    def test_a_kernel_of_bf16_is_right_where_bf16_is_asked_for(self) -> None:
        line = self.judged(DOUBLED, DOUBLE_BF16, "--precision", "bf16")
        self.assertEqual(line["verdict"]["outcome"]["kind"], "pass")
        self.assertEqual(line["verdict"]["protocol"]["precision"], "bf16")
        self.assertEqual(line["reward"], 1)

    def test_and_wrong_in_fp32(self) -> None:
        self.assertEqual(self.judged(DOUBLED, DOUBLE_BF16)["reward"], -1)

    def test_a_verdict_records_how_it_was_found(self) -> None:
        options = ["--mode", "eval", "--inputs", "verified", "--trials", "4", "--no-shapes"]
        options += ["--tolerance", "0.5", "--tolerance-half", "0.25"]
        verdict = self.judged(DOUBLED, ZEROS, *options)["verdict"]
        expected = {
            "mode": "eval",
            "inputs": "verified",
            "trials": 4,
            "shapes": False,
            "tolerance_fp32": 0.5,
            "tolerance_half": 0.25,
            "precision": "task",
            "tf32": False,
            "timing": "none",
            "device": "",
        }
        self.assertEqual(expected | verdict["protocol"], verdict["protocol"])
        tried = [trial["distribution"] for trial in verdict["outcome"]["trials"]]
        self.assertEqual(tried, ["native", "times_3", "times_0.01", "times_-1"])

    def test_what_cannot_be_is_refused(self) -> None:
        files = [self.write("task.py", DOUBLED), self.write("answer.py", ZEROS)]
        for option in (["--mode", "test"], ["--precision", "fp8"], ["--inputs", "all"]):
            done = self.run_program("eval", "--task", files[0], "-c", files[1], *option)
            self.assertEqual(done.returncode, BAD_INPUT, option)


if __name__ == "__main__":
    unittest.main()
