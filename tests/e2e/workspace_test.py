# SPDX-License-Identifier: Apache-2.0
"""A folder in which an agent writes one kernel: docs/workspace.md."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from pathlib import Path

from program import BAD_INPUT, MUSACODER, ROOT, SOME_FAIL, InFolder, errors_of, run

sys.path.insert(0, str(ROOT / "python"))
from musacoder.workspace import judge  # noqa: E402

HEADER = """#pragma once
__device__ inline float twice(float x) { return 2 * x; }
"""
KERNEL = """#include <torch/extension.h>
#include "device/twice.cuh"

__global__ void row_sum(const float* x, float* y, int columns) {
  __shared__ float parts[128];
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += 128) sum += twice(x[blockIdx.x * columns + i]);
  parts[threadIdx.x] = sum / 2;
  BARRIER
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = parts[0];
}

torch::Tensor forward(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""


class Packing(unittest.TestCase):
    def test_files_are_there_before_the_module_goes_on(self) -> None:
        module = '"""Text."""\nfrom __future__ import annotations\nfrom pathlib import Path\n'
        module += 'read = Path("a/k.cu").read_bytes().decode()\n'
        sources = {"a/k.cu": "line\n\\n'", "b.h": "'''\r\n", "c.h": 'x"\n'}
        made = judge.packed(module, sources)
        folder = self.enterContext(InTemporary())
        found: dict[str, object] = {}
        exec(compile(made.text, "judged.py", "exec"), found)
        self.assertEqual(found["read"], sources["a/k.cu"])
        for name, wanted in sources.items():
            self.assertEqual((folder / name).read_bytes().decode(), wanted)

    def test_each_line_has_its_place(self) -> None:
        module = '"""Text."""\nimport torch\nlast = 1'
        made = judge.packed(module, {"k.cu": "first\nsecond\n", "h.h": "third"})
        lines = made.text.splitlines()
        for text, place in (
            ('"""Text."""', "answer.py:1"), ("first", "k.cu:1"), ("second", "k.cu:2"),
            ("third", "h.h:1"), ("import torch", "answer.py:2"), ("last = 1", "answer.py:3"),
        ):  # fmt: skip
            (number,) = [i for i, line in enumerate(lines, 1) if text in line]
            located = made.located(f"at candidate:{number}.")
            self.assertEqual(located, f"at answer/{place}.")
        self.assertEqual(made.located("at candidate:99."), "at candidate:99.")

    def test_a_module_without_files_stays_as_it_is(self) -> None:
        self.assertEqual(judge.packed("x = 1", {}).text, "x = 1")


class InTemporary:
    """The working directory, for a while."""

    def __enter__(self) -> Path:
        import tempfile

        self._folder = tempfile.TemporaryDirectory()
        self._before = os.getcwd()
        os.chdir(self._folder.name)
        return Path(self._folder.name)

    def __exit__(self, *_: object) -> None:
        os.chdir(self._before)
        self._folder.cleanup()


class Workspace(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.work = self.folder / "work"
        made = run("workspace", "reduction/row_sum", self.work)
        self.assertEqual(made.returncode, 0, made.stderr)

    def judge(self) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "MUSACODER": MUSACODER, "MUSACODER_OPTIONS": "--backend cpu"}
        environment.pop("MUSACODER_URL", None)
        return subprocess.run([sys.executable, str(self.work / "judge")], env=environment,
                              capture_output=True, text=True, check=False)  # fmt: skip

    def answer(self, barrier: str) -> None:
        (self.work / "answer/kernel.cu").write_text(KERNEL.replace("BARRIER", barrier))
        (self.work / "answer/device").mkdir(exist_ok=True)
        (self.work / "answer/device/twice.cuh").write_text(HEADER)

    def test_the_first_version_compiles_and_fails(self) -> None:
        done = self.judge()
        self.assertEqual(done.returncode, SOME_FAIL, done.stdout + done.stderr)
        self.assertIn("outcome: wrong", done.stdout)

    def test_an_answer_of_several_files_passes(self) -> None:
        self.answer("__syncthreads();")
        done = self.judge()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("outcome: pass\nreward: 1.0\n", done.stdout)
        outside = run("workspace", "reduction/row_sum", self.work, "--judge",
                      env={**os.environ, "MUSACODER_OPTIONS": "--backend cpu"})  # fmt: skip
        self.assertEqual(outside.returncode, 0, outside.stdout + outside.stderr)

    def test_feedback_names_the_files_and_their_lines(self) -> None:
        self.answer("")
        done = self.judge()
        self.assertEqual(done.returncode, SOME_FAIL, done.stdout + done.stderr)
        lines = KERNEL.splitlines()
        (number,) = [i for i, line in enumerate(lines, 1) if "+= parts[threadIdx.x + half]" in line]
        self.assertIn(f"at answer/kernel.cu:{number}.\n", done.stdout)

    def test_a_changed_task_or_judge_is_refused_in_one_line(self) -> None:
        for name in ("task.py", "TASK.md", ".workspace/service.py", "judge"):
            file = self.work / name
            before = file.read_text()
            file.write_text(before + "\n#\n")
            done = self.judge()
            self.assertEqual(done.returncode, BAD_INPUT, done.stdout)
            self.assertEqual(len(errors_of(done.stderr)), 1)
            self.assertIn(f"judge: {name}: only the files in answer/ may be changed", done.stderr)
            file.write_text(before)

    def test_a_judge_with_a_hash_of_its_own_is_refused_from_outside(self) -> None:
        (self.work / "task.py").write_text("changed")
        hashes = {"task.py": judge.hash_of(self.work / "task.py")}
        (self.work / judge.MANIFEST).write_text(str(hashes).replace("'", '"'))
        done = run("workspace", "reduction/row_sum", self.work, "--judge")
        self.assertEqual(done.returncode, BAD_INPUT, done.stdout)
        self.assertEqual(len(errors_of(done.stderr)), 1)
        self.assertIn(f"task.py, {judge.MANIFEST}: only", done.stderr)

    def test_bad_requests_are_refused_in_one_line(self) -> None:
        for task, folder, why in (
            ("reduction/row_sum", self.work, "is not empty"),
            ("reduction/none", self.folder / "other", "there is no task reduction/none"),
            ("none.py", self.folder / "other", "none.py: No such file"),
        ):
            done = run("workspace", task, folder)
            self.assertEqual(done.returncode, BAD_INPUT)
            self.assertEqual(len(errors_of(done.stderr)), 1, done.stderr)
            self.assertIn(why, done.stderr)
        (self.work / "answer/answer.py").unlink()
        self.assertEqual(self.judge().returncode, BAD_INPUT)


if __name__ == "__main__":
    unittest.main()
