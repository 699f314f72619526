# SPDX-License-Identifier: Apache-2.0
"""`prepare` and `measure` are `eval` in two halves.

Runs the program named by $MUSACODER; no GPU is needed, nor nvcc.
"""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any

from program import BAD_INPUT, ROOT, InFolder, run

TASK = "reduction/row_sum"
HONEST = str(ROOT / f"tests/corpus/honest/{TASK}.py")
# A kernel whose source has the width in it, as at import nobody knows it.
SIZED = """
import torch
from torch.utils.cpp_extension import load_inline

KERNEL = r'''
__global__ void row_sum(const float* x, float* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = 0; i < WIDTH; ++i) sum += x[row * WIDTH + i];
  y[row] = sum;
}
torch::Tensor call(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<(x.size(0) + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0));
  return y;
}
'''


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.built = load_inline("sized", "torch::Tensor call(torch::Tensor x);",
                                 KERNEL.replace("WIDTH", str(width)), functions=["call"])

    def forward(self, x):
        return self.built.call(x)
"""
SIZED_TASK = """
import torch

require_general = True
rows, width = 64, 1000

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()

    def forward(self, x):
        return x.sum(1)

def get_inputs():
    return [torch.rand(rows, width)]

def get_init_inputs():
    return [width]
"""


def without_times(line: str) -> dict[str, Any]:
    """The verdict's parts that do not depend on the order of the candidate's blocks."""
    verdict: dict[str, Any] = json.loads(line, object_hook=without_thread)["verdict"]
    for name in ("stages", "memory_peak_bytes", "compile_cpu_s", "compile_cached", "output_tail"):
        del verdict["telemetry"][name]
    return verdict


def without_thread(found: dict[str, Any]) -> dict[str, Any]:
    """A finding without the thread that was found first."""
    if "block" not in found:
        return found
    return {name: found[name] for name in found if name not in ("block", "thread", "detail")}


class Staged(InFolder):
    def halves(self, task: object, *candidates: object) -> tuple[list[str], list[str]]:
        """The lines of JSON that the first half prints, and those of the second."""
        out = self.folder / "out"
        given = ["--task", task, "-c", *candidates, "--backend", "cpu"]
        first = run("prepare", *given, "--out", str(out), "--json")
        self.assertEqual(first.returncode, 0, first.stderr)
        prepared = sorted(map(str, out.glob("*.prepared")))
        second = run("measure", *prepared, "--json", "--seed", "1", "--backend", "cpu")
        self.assertEqual(second.returncode, 0, second.stderr)
        return first.stdout.splitlines(), second.stdout.splitlines()

    def test_say_what_eval_says(self) -> None:
        wrong = Path(HONEST).read_text().replace("sum += ", "sum -= ")
        broken = Path(HONEST).read_text().replace("__global__", "__globl__")
        paths = [HONEST, self.write("wrong.py", wrong), self.write("broken.py", broken)]
        decided, measured = self.halves(TASK, *paths)
        whole = run("eval", "--task", TASK, "-c", *paths, "--json", "--seed", "1",
                    "--backend", "cpu").stdout.splitlines()  # fmt: skip
        self.assertEqual(len(decided), 1)
        self.assertEqual(len(measured), 2)
        for got, expected in zip([*measured, *decided], whole, strict=True):
            self.assertEqual(without_times(got), without_times(expected))

    def test_sources_made_of_sizes_are_compiled_for_each(self) -> None:
        task = self.write("task.py", SIZED_TASK)
        _, (line,) = self.halves(task, self.write("sized.py", SIZED))
        outcome = json.loads(line)["verdict"]["outcome"]
        self.assertEqual(outcome["kind"], "pass", line)
        widths = {str(trial["constants"].get("width")) for trial in outcome["trials"]}
        self.assertGreater(len(widths), 1)
        self.assertTrue(all(trial["passed"] for trial in outcome["trials"]), line)

    def test_what_cannot_be_measured_here_is_named_and_the_others_are_measured(self) -> None:
        out = self.folder / "out"
        self.assertEqual(run("prepare", "--task", TASK, "-c", HONEST, "--backend", "cpu",
                             "--out", str(out)).returncode, 0)  # fmt: skip
        good = out / "00000.prepared"
        text = good.read_bytes()
        other = self.folder / "other.prepared"
        other.write_bytes(text.replace(b'"pytorch":"2.', b'"pytorch":"1.', 1))
        cut = self.folder / "cut.prepared"
        cut.write_bytes(text[:-1])
        bad = {
            str(other): "prepared for",
            str(cut): "cut short",
            HONEST: "first line",
        }
        done = run("measure", str(good), *bad, "--backend", "cpu", "--json")
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        for path, words in bad.items():
            (line,) = [line for line in done.stderr.splitlines() if path in line]
            self.assertIn(words, line)
        (verdict,) = map(json.loads, done.stdout.splitlines())
        self.assertEqual(verdict["verdict"]["outcome"]["kind"], "pass")
        alone = run("measure", str(other), "--backend", "cpu")
        self.assertEqual((alone.returncode, alone.stdout), (BAD_INPUT, ""), alone.stderr)

    def test_what_another_run_prepared_is_not_taken_for_this_ones(self) -> None:
        (self.folder / "00007.prepared").touch()
        done = run("prepare", "--task", TASK, "-c", HONEST, "--out", str(self.folder))
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        self.assertIn(f"(rm {self.folder}/*.prepared), or name another", done.stderr)
        self.assertEqual(len(list(self.folder.iterdir())), 1)


if __name__ == "__main__":
    unittest.main()
