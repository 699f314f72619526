# SPDX-License-Identifier: Apache-2.0
"""The selection of answers for rejection fine-tuning."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from musacoder import rft  # noqa: E402

TASK = "class Model:\n    pass\n"


def kernel(body: str, name: str = "k", comment: str = "") -> str:
    return f"source = '''\n// {comment}\n__global__ void {name}(float* x) {{ {body} }}\n'''\n"


class Structure(unittest.TestCase):
    def test_names_numbers_and_comments_do_not_count(self) -> None:
        one = rft.structure_of(kernel("x[threadIdx.x] = 1.5f;"))
        self.assertEqual(one, rft.structure_of(kernel("x[threadIdx.x] = 2;", "other", "why")))
        self.assertNotEqual(one, rft.structure_of(kernel("x[threadIdx.x] += 1;")))

    def test_text_around_the_kernels_does_not_count(self) -> None:
        self.assertEqual(
            rft.structure_of("import a\n" + kernel("x[0] = 1;")),
            rft.structure_of("Here it is.\n" + kernel("x[0] = 1;") + "print(1)\n"),
        )


class Targets(unittest.TestCase):
    def test_a_rare_structure_is_drawn_before_a_frequent_one_is_drawn_twice(self) -> None:
        frequent = [kernel(f"x[0] = {i};", comment=str(i)) for i in range(20)]
        rare = kernel("for (int i = 0; i < 4; ++i) x[i] = i;")
        drawn = rft.draw_targets([*frequent, rare, rare], 3)
        answers = [answer for answer, _ in drawn]
        self.assertIn(rare, answers[:2])
        self.assertEqual(len(set(answers)), 3)
        self.assertEqual(drawn, rft.draw_targets([rare, *reversed(frequent)], 3))
        self.assertEqual(rft.draw_targets([], 3), [])


class CommandLine(unittest.TestCase):
    def test_rows_are_conversations_that_end_in_answers_that_passed(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prompt = [{"role": "user", "content": "task"}]
            row = {"id": "t", "prompt": prompt, "label": TASK}
            (folder / "rl.jsonl").write_text(json.dumps(row) + "\n")

            def episode(s: float | None, answer: str, **more: bool) -> str:
                turns = [{"answer": answer, "s": s}, {"answer": "second turn", "s": 1.0}]
                return json.dumps({"task": TASK, "turns": turns, **more}) + "\n"

            lines = [
                episode(1.0, "right<|im_end|>"),
                episode(-1.0, "wrong"),
                episode(None, "unknown"),
                episode(1.0, "right to another prompt", replay=True),
            ]
            (folder / "host-1.jsonl").write_text("".join(lines))
            command = [sys.executable, "-m", "musacoder.rft", "--answers", f"{name}/host-*.jsonl"]
            command += ["--data", f"{name}/rl.jsonl", "--out", f"{name}/sft.jsonl"]
            done = subprocess.run(
                command, cwd=ROOT / "python", capture_output=True, text=True, check=True
            )
            self.assertIn("3 answers in 1 files: 1 targets of 1 tasks", done.stdout)
            rows = [json.loads(line) for line in (folder / "sft.jsonl").read_text().splitlines()]
            self.assertEqual(
                [one["messages"] for one in rows],
                [[*prompt, {"role": "assistant", "content": "right"}]],
            )


class Dialects(unittest.TestCase):
    def test_answers_in_a_dialect_go_with_the_prompt_in_it(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            data = Path(name, "rl.jsonl")
            rows = [
                {"id": "t", "prompt": [{"content": "CUDA"}], "label": TASK, "dialect": "cuda"},
                {"id": "t-musa", "prompt": [{"content": "MUSA"}], "label": TASK, "dialect": "musa"},
            ]
            data.write_text("".join(json.dumps(row) + "\n" for row in rows))
            turn = {"answer": "right", "s": 1.0}
            line = {"task": TASK, "turns": [turn], "dialect": "cuda"}
            episodes = Path(name, "host.jsonl")
            episodes.write_text(json.dumps(line) + "\n")
            found = rft.select(rft.first_turns(episodes), rft.read_prompts(data), 4, "")
            self.assertEqual([row["messages"][0]["content"] for row in found], ["CUDA"])


if __name__ == "__main__":
    unittest.main()
