# SPDX-License-Identifier: Apache-2.0
"""Candidates on the ptx device through the command line: `musacoder eval --backend ptx`."""

from __future__ import annotations

import importlib.util
import json
import unittest
from pathlib import Path
from typing import Any

from program import BAD_INPUT, ROOT, InFolder, run

TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.flip(1) * 2
def get_inputs(): return [torch.rand(30, 64)]
def get_init_inputs(): return []
"""
CANDIDATE = """import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <torch/extension.h>
template <class T>
__global__ void reverse(const T* x, T* y, int n) {
  __shared__ T row[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  row[threadIdx.x] = 2 * x[i];
  BARRIER
  y[i OFFSET] = row[63 - threadIdx.x];
}
torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be on the device");
  auto y = torch::empty_like(x);
  reverse<float><<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
'''
ext = load_inline(name="reverse", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=SOURCE, functions=["run"])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert x.is_cuda and x.device == torch.device("cuda", 0)
        return ext.run(x)
"""

TRITON = """import torch
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["columns"])
@triton.jit
def reverse(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns LIMIT
        value = tl.load(x + row * columns + columns - 1 - at, mask=mask)
        tl.store(y + PLACE * columns + at, 2 * value, mask=mask)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        reverse[(x.size(0),)](x, y, x.size(1))
        return y
"""


def in_triton(limit: str = "", place: str = "row") -> str:
    return TRITON.replace("LIMIT", limit).replace("PLACE", place)


LAYERS = """class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(32, 48)
        self.cell = torch.nn.LSTM(48, 64)
"""


def candidate(barrier: str = "__syncthreads();", offset: str = "") -> str:
    return CANDIDATE.replace("BARRIER", barrier).replace("OFFSET", offset)


class Ptx(InFolder):
    def eval(
        self, candidates: dict[str, str], *options: str, task: str = TASK
    ) -> dict[str, Any]:
        """The outcomes by candidate."""
        given = ["--backend", "ptx", "--task", str(self.write("task.py", task)), *options]
        for name, text in candidates.items():
            given += ["--candidate", str(self.write(f"{name}.py", text))]
        done = run("eval", *given, "--json", "--jobs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        verdicts = [json.loads(line)["verdict"] for line in done.stdout.splitlines()]
        return {Path(one["candidate"]).stem: one["outcome"] for one in verdicts}

    @unittest.skipUnless(importlib.util.find_spec("triton"), "PyTorch came without Triton")
    def test_judges_triton(self) -> None:
        outcomes = self.eval(
            {
                "right": in_triton(),
                "races": in_triton(place="(row % 2)"),
                "overruns": in_triton(limit="+ 100"),
                "does_not_compile": in_triton(place="nothing"),
                # The second configuration leaves out the last columns.
                "one_is_wrong": in_triton(limit="- (BLOCK // 256)"),
            }
        )
        self.assertEqual(
            {name: outcome["kind"] for name, outcome in outcomes.items()},
            {
                "right": "pass",
                "races": "wrong",
                "overruns": "runtime",
                "does_not_compile": "compile",
                "one_is_wrong": "wrong",
            },
        )
        trials = outcomes["one_is_wrong"]["trials"]
        findings = [one for trial in trials for one in trial["findings"]]
        self.assertEqual([one["kind"] for one in findings], ["configuration"])
        self.assertIn("1 of 2", findings[0]["detail"])
        self.assertIn("reverse: BLOCK: 256", findings[0]["detail"])
        # The first row reads and the last one writes out of bounds; all race with their neighbours.
        [found, *_] = [
            one
            for one in outcomes["overruns"]["findings"]
            if one["kind"] in ("out_of_bounds_read", "out_of_bounds_write")
        ]
        operation = "tl.load" if found["kind"] == "out_of_bounds_read" else "tl.store"
        self.assertIn(operation, found["location"]["excerpt"])
        [race, *_] = outcomes["races"]["trials"][0]["findings"]
        self.assertEqual(race["kind"], "global_race")
        self.assertIn("tl.store", race["location"]["excerpt"])
        self.assertIn("nothing is not defined", json.dumps(outcomes["does_not_compile"]))

    @unittest.skipUnless(importlib.util.find_spec("triton"), "PyTorch came without Triton")
    def test_the_example_in_triton_of_the_prompts_is_right(self) -> None:
        prompts = ROOT / "prompts"
        text = (prompts / "example_triton.py").read_text()
        task = (prompts / "example_task.py").read_text()
        self.assertEqual(self.eval({"example": text}, task=task)["example"]["kind"], "pass")
        refused = self.eval({"example": text}, "--language", "cuda", task=task)["example"]
        self.assertEqual(refused["findings"][0]["rule"], "language.other")

    def test_judges_what_kernels_compute_and_how(self) -> None:
        outcomes = self.eval(
            {
                "right": candidate(),
                "races": candidate(barrier=""),
                "overruns": candidate(offset="+ 1"),
                "does_not_compile": candidate(offset="+ nothing"),
            }
        )
        kinds = {name: outcome["kind"] for name, outcome in outcomes.items()}
        expected = {
            "right": "pass",
            "races": "wrong",
            "overruns": "runtime",
            "does_not_compile": "compile",
        }
        self.assertEqual(kinds, expected)
        race = outcomes["races"]["trials"][0]["findings"][0]
        self.assertEqual(race["kind"], "shared_race")
        self.assertIn("row[", race["location"]["excerpt"])
        overruns = {one["kind"]: one for one in outcomes["overruns"]["findings"]}
        self.assertIn("y[i + 1]", overruns["out_of_bounds_write"]["location"]["excerpt"])

    def test_operators_of_pytorch_compute_on_the_device(self) -> None:
        layers = {
            "right": "torch.softmax(self.cell(self.linear(x))[0], 1)",
            "wrong": "torch.softmax(self.cell(self.linear(x))[0], 0)",
        }
        outcomes = self.eval(
            {
                name: candidate()
                .replace("class ModelNew(torch.nn.Module):", LAYERS.replace("Model", "ModelNew"))
                .replace("return ext.run(x)", f"return ext.run({layers[name]})")
                for name in layers
            },
            *("--policy", "kernelbench"),
            task=f"import torch\n{LAYERS}\n    def forward(self, x):\n"
            f"        return {layers['right']}.flip(1) * 2\n"
            "def get_inputs(): return [torch.randn(5, 32)]\n"
            "def get_init_inputs(): return []\n",
        )
        kinds = {name: outcome["kind"] for name, outcome in outcomes.items()}
        self.assertEqual(kinds, {"right": "pass", "wrong": "wrong"})

    def test_names_what_it_does_not_support(self) -> None:
        task = self.write("task.py", TASK)
        text = self.write("candidate.py", candidate())
        given = ["eval", "--backend", "ptx", "--task", str(task), "--candidate", str(text)]
        done = run(*given, "--dialect", "musa", "--musa-arch", "mp_21")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("--backend ptx has no warps of 128 threads yet", done.stderr)


if __name__ == "__main__":
    unittest.main()
