# SPDX-License-Identifier: Apache-2.0
"""Candidates in the dialect of MUSA through the command line: `musacoder eval --dialect musa`."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any

from program import InFolder, run

TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs(): return [torch.rand(64, 96)]
def get_init_inputs(): return []
"""
CANDIDATE = """import torch, torch_musa
from torch_musa.utils.musa_extension import load_inline

SOURCE = r'''
#include <musa_runtime.h>
#include "torch_musa/csrc/core/MUSAStream.h"
\x23if !defined(__MUSACC__) || !defined(__MUSA__)
\x23error "a compiler of MUSA defines these"
\x23endif
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
\x23if __MUSA_ARCH__ >= 310
  if (i < n) y[i] = 2 * x[i];
\x23elif defined(__MUSA_ARCH__)
  if (i < n) y[i] = __MUSA_ARCH__;
\x23endif
  __syncthreads_lm();
}
torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.is_privateuseone(), "x must be on MUSA");
  auto y = torch::empty_like(x);
  const int n = x.numel();
  twice<<<(n + 255) / 256, 256, 0, c10::musa::getCurrentMUSAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), n);
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return y;
}
'''
ext = load_inline(
    name="twice", cpp_sources="torch::Tensor run(torch::Tensor x);", musa_sources=SOURCE,
    functions=["run"], extra_musa_cflags=["-O3", "-mtgpu", "--offload-arch=mp_31"])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert x.is_musa and x.device.type == "musa"
        return ext.run(x)
"""
FAILURE = "C10_MUSA_CHECK(musaSetDevice(7));"


class Musa(InFolder):
    def eval(self, candidates: dict[str, str], *options: str) -> dict[str, Any]:
        """The lines of `--json` by candidate."""
        given = ["--backend", "cpu", "--task", str(self.write("task.py", TASK))]
        for name, text in candidates.items():
            given += ["--candidate", str(self.write(f"{name}.py", text))]
        done = run("eval", *given, "--dialect", "musa", "--json", "--jobs", "2", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = map(json.loads, done.stdout.splitlines())
        return {Path(line["verdict"]["candidate"]).stem: line for line in lines}

    def test_a_question_names_the_dialect_of_its_answer(self) -> None:
        """One program judges rows of both dialects, whichever it was started with."""
        question = {"task": {"id": "t", "code": TASK}, "answer": CANDIDATE}
        dialects = {"a": {"dialect": "musa"}, "b": {"dialect": "cuda"}, "c": {}}
        lines = [json.dumps({**question, "id": k, "options": v}) for k, v in dialects.items()]
        text = "\n".join(lines) + "\n"
        given = ["eval", "--stream", "--backend", "cpu", "--jobs", "2"]
        for options, passing in (([], ["a"]), (["--dialect", "musa"], ["a", "c"])):
            done = run(*given, *options, input=text)
            self.assertEqual(done.returncode, 0, done.stderr)
            replies = [json.loads(line) for line in done.stdout.splitlines()]
            found = {one["id"]: one for one in replies}
            passed = [k for k in "abc" if found[k]["verdict"]["outcome"]["kind"] == "pass"]
            self.assertEqual(passed, passing)
            self.assertEqual(found["a"]["verdict"]["protocol"]["dialect"], "musa")
            self.assertEqual(found["b"]["verdict"]["protocol"]["dialect"], "cuda")
        done = run(*given, "--dialect", "musa", "--musa-arch", "mp_22", input=lines[1] + "\n")
        self.assertIn("start one for cuda", json.loads(done.stdout)["error"])

    def test_candidates_are_judged_and_shown_in_their_dialect(self) -> None:
        results = self.eval(
            {
                "right": CANDIDATE,
                "unported": CANDIDATE.replace("  __syncthreads_lm();", "  cudaGetLastError();"),
                "typo": CANDIDATE.replace("  auto y", "  musaMaloc(); auto y"),
                "fails": CANDIDATE.replace("numel();", "numel(); " + FAILURE),
            }
        )
        kinds = {name: line["verdict"]["outcome"]["kind"] for name, line in results.items()}
        self.assertEqual(
            kinds, {"right": "pass", "unported": "compile", "typo": "compile", "fails": "runtime"}
        )
        right = results["right"]
        protocol = right["verdict"]["protocol"]
        self.assertEqual((protocol["dialect"], protocol["musa_architecture"]), ("musa", "mp_31"))
        self.assertIn(
            "MUSA dialect (mp_31), judged as its port to CUDA on the CPU", right["feedback"]
        )
        (unported,) = results["unported"]["verdict"]["outcome"]["diagnostics"]
        self.assertIn(
            '"cudaGetLastError" is of CUDA and does not exist on MUSA: write "musaGetLastError"',
            unported["message"],
        )
        self.assertEqual(unported["location"]["line"], 17)
        typo = results["typo"]["verdict"]["outcome"]["diagnostics"][0]
        self.assertIn("musaMaloc", typo["message"])
        self.assertEqual(
            typo["location"]["excerpt"], "  musaMaloc(); auto y = torch::empty_like(x);"
        )
        for name in ("typo", "fails"):
            self.assertNotIn("cuda", results[name]["feedback"])

    def test_architecture_decides_guards(self) -> None:
        result = self.eval({"right": CANDIDATE}, "--musa-arch", "mp_22")["right"]
        self.assertEqual(result["verdict"]["outcome"]["kind"], "wrong")
        self.assertIn("220", result["feedback"])


if __name__ == "__main__":
    unittest.main()
