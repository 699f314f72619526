# SPDX-License-Identifier: Apache-2.0
"""Verdicts that are recorded and replayed without the candidate: docs/replay.md."""

from __future__ import annotations

import json
import subprocess
import unittest
from pathlib import Path
from typing import Any

from program import BAD_INPUT, HONEST, InFolder, errors_of, run

TASK = """import torch
class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((64,), scale))
    def forward(self, x):
        return x.t() * self.scale
def get_inputs(): return [torch.rand(64, 30)]
def get_init_inputs(): return [3.0]
"""
# It has a table in a variable of its module, and a copy by PyTorch of what a kernel made.
CANDIDATE = """import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <torch/extension.h>
__constant__ float table[2];
__device__ float added[1];
__global__ void scale(const float* x, const float* by, const float* plus, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i] * by[i / n] * table[0] + plus[0] OFFSET;
}
torch::Tensor run(torch::Tensor x, torch::Tensor by) {
  const float values[2] = {1.0f, 0.0f};
  cudaMemcpyToSymbol(table, values, sizeof values);
  cudaMemcpyToSymbol(added, values + 1, sizeof(float));
  void* place = nullptr;
  cudaGetSymbolAddress(&place, added);
  auto y = torch::empty_like(x);
  scale<<<x.numel() / 64, 64>>>(x.data_ptr<float>(), by.data_ptr<float>(), (float*)place,
                                y.data_ptr<float>(), x.size(1));
  return y;
}
'''
ext = load_inline(name="scaled", functions=["run"], cuda_sources=SOURCE,
                  cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor by);")

class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((64,), scale))
    def forward(self, x):
        return ext.run(x, self.scale).t().contiguous()
"""


class Replays(InFolder):
    def record(self, text: str, *options: object) -> tuple[subprocess.CompletedProcess[str], Path]:
        task = self.write("task.py", TASK)
        file = self.folder / "verdict.recording"
        given = ["--backend", "cpu", "--task", task, self.write("answer.py", text)]
        return run("eval", *given, "--record", file, "--json", *options), file

    def replay(self, file: Path) -> tuple[int, dict[str, Any]]:
        done = run("replay", file, "--backend", "cpu", "--json")
        self.assertTrue(done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_a_verdict_is_replayed_without_the_candidate(self) -> None:
        done, file = self.record(CANDIDATE.replace("OFFSET", ""))
        self.assertEqual(json.loads(done.stdout)["verdict"]["outcome"]["kind"], "pass", done.stdout)
        (self.folder / "answer.py").unlink()
        code, found = self.replay(file)
        self.assertEqual((code, found["agrees"]), (0, True), found)
        self.assertEqual(found["outcome"], "pass")
        self.assertEqual(found["recorded_on"], found["replayed_on"])
        self.assertEqual((found["differences"], found["errors"]), ([], []))
        self.assertGreater(found["calls"], 3)
        self.assertEqual(found["equal"], found["outputs"])

        whole = file.read_bytes()
        self.assertLess(len(whole), 2 << 20)
        for at in (0, 30, len(whole) // 2, len(whole) - 1):
            changed = bytearray(whole)
            changed[at] ^= 1
            refused = run("replay", self.write("changed", bytes(changed)), "--backend", "cpu")
            self.assertEqual(refused.returncode, BAD_INPUT, refused.stderr)
            self.assertEqual(len(errors_of(refused.stderr)), 1)
            self.assertIn("no recording", refused.stderr)

    def test_a_fault_is_found_again(self) -> None:
        done, file = self.record(CANDIDATE.replace("OFFSET", "+ x[i + 1920]"))
        outcome = json.loads(done.stdout)["verdict"]["outcome"]
        self.assertEqual(outcome["kind"], "runtime", done.stdout)
        _, found = self.replay(file)
        self.assertEqual(found["outcome"], "runtime")
        self.assertIn("out_of_bounds_read", {one["kind"] for one in found["findings"]})

    def test_what_cannot_be_recorded_is_refused_in_one_line(self) -> None:
        for text, options, why in (
            (CANDIDATE, ["--policy", "kernelbench"], "--policy kernelbench are not recorded"),
            (CANDIDATE, ["--strict"], "leave out --strict"),
            (CANDIDATE, [HONEST / "reduction/row_sum.py"], "give one candidate"),
            ("import os", [], "known before the candidate had a device"),
        ):
            done, file = self.record(text.replace("OFFSET", ""), *options)
            self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
            self.assertEqual(len(errors_of(done.stderr)), 1, done.stderr)
            self.assertIn(why, done.stderr)
            self.assertFalse(file.exists())


if __name__ == "__main__":
    unittest.main()
