# SPDX-License-Identifier: Apache-2.0
"""The folder for Hugging Face: configurations, splits, one schema, omitted rows."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

from report import publish

LOADER = Path(__file__).with_name("load_published.py")
KERNEL = "__global__ void k(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = BODY; }"


def sample(number: int, kind: str, text: str) -> dict[str, Any]:
    return {
        "id": f"{kind}-{number}",
        "kind": kind,
        "dialect": "cuda",
        "task": f"t{number}",
        "families": ["softmax"],
        "operators": ["softmax"],
        "depth": 1,
        "messages": [
            {"role": "user", "content": f"```python\nN = {number}\n```\n"},
            {"role": "assistant", "content": text},
        ],
        "provenance": {
            "seed": 3,
            "template": "tile_16",
            "features": ["shared_memory_tiles"],
            "mutations": [],
        },
    }


def prompt(number: int) -> dict[str, Any]:
    return {
        "id": f"t{number}",
        "prompt": [{"role": "user", "content": "abcdefgh"[number] + " task " * 9}],
        "label": f"N = {number}\n",
        "dialect": "musa",
        "extra_info": {"task": f"t{number}", "families": [], "operators": [], "depth": 2},
    }


class NearDuplicates(unittest.TestCase):
    def test_are_those_that_all_pairs_show(self) -> None:
        rng = random.Random(7)
        template = [rng.randrange(2**32) for _ in range(200)]
        sketches = []
        for _ in range(150):  # Variants of one template, from nearly equal to half different.
            changed = set(rng.sample(range(200), rng.choice((2, 6, 10, 14, 40, 100))))
            some = [rng.randrange(2**32) if at in changed else template[at] for at in range(200)]
            sketches.append(sorted(set(some))[: rng.choice((40, publish.SKETCH))])
        seen = publish.Seen(Counter(value for sketch in sketches for value in sketch))
        taken: list[list[int]] = []
        for sketch in sketches:
            is_new = all(publish.similarity(sketch, one) < publish.NEAR_DUPLICATE for one in taken)
            self.assertEqual(seen.takes(sketch), is_new)
            taken += [sketch] if is_new else []
        self.assertGreater(len(taken), 30)
        self.assertLess(len(taken), 140)


class Publish(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder, self.out = Path(directory.name), Path(directory.name) / "hub"
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop("MC_KERNELBENCH", None)
        (self.folder / "forge.json").write_text(json.dumps({"settings": {"seed": 3}}))
        bodies = ("expf(x[i])", "expf(x[i])  ", "a + b * c - d / e * tanhf(f) + sinf(g) * cosf(h)")
        texts = [KERNEL.replace("BODY", body) for body in bodies]
        rows = [sample(i, "generation", text) for i, text in enumerate(texts)]
        rows += [sample(9, "question", f"It is {n}.") for n in (4, 5)]
        self.write("sft.jsonl", rows)
        self.write("rl.jsonl", [prompt(1), prompt(7)])
        self.write("test.jsonl", [prompt(3)])

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def published(self) -> dict[str, list[dict[str, Any]]]:
        self.out.mkdir(exist_ok=True)
        publish.publish(self.folder, self.out, None)
        return {
            str(path.relative_to(self.out)): [
                json.loads(one) for one in path.read_text().splitlines()
            ]
            for path in sorted(self.out.glob("data/*/*.jsonl"))
        }

    def test_every_row_has_the_same_columns_and_every_file_is_in_the_card(self) -> None:
        files = self.published()
        columns = [name for name, _, _ in publish.COLUMNS]
        for rows in files.values():
            for row in rows:
                self.assertEqual(list(row), columns)
        card = (self.out / "README.md").read_text()
        self.assertTrue(card.startswith("---\nlicense: apache-2.0\n"))
        for path in files:
            self.assertIn(f"    path: {path}\n", card)
        self.assertIn("**not** compared with KernelBench", card)
        mix = json.loads((self.out / "mix.json").read_text())
        self.assertAlmostEqual(sum(one["share"] for one in mix.values()), 1, places=3)

    def test_near_duplicates_go_and_questions_differ_by_their_numbers(self) -> None:
        files = self.published()
        kept = {row["id"] for rows in files.values() for row in rows}
        self.assertEqual(len([one for one in kept if one.startswith("generation")]), 2)
        self.assertEqual(sum("question" in path and len(rows) for path, rows in files.items()), 2)

    def test_the_rows_of_tasks_that_overlap_with_the_benchmark_go(self) -> None:
        os.environ["MC_KERNELBENCH"] = "somewhere"
        self.out.mkdir()
        with mock.patch.object(publish, "overlapping", return_value={"t2", "t7"}):
            counts = publish.publish(self.folder, self.out, Path("musacoder"))
        self.assertEqual(counts["rows of tasks that overlap with KernelBench"], 2)
        text = "".join(path.read_text() for path in self.out.glob("data/*/*.jsonl"))
        self.assertNotIn('"t2"', text)
        self.assertNotIn('"t7"', text)

    def test_what_import_refuses_for_its_overlap_is_found_by_the_tasks_file(self) -> None:
        rows = [
            {
                "path": "tasks",
                "origin": "train/t2.py",
                "why": "overlap: the structure of level1/24",
            },
            {"path": "tasks", "origin": "test/t3.py", "why": "duplicate: a task was taken"},
            {"path": "tasks", "origin": "train/t4.py", "why": ""},
        ]
        self.write("import.jsonl", rows)
        program = self.folder / "musacoder"  # Called as: import TASKS --kernelbench K --out OUT.
        program.write_text(f'#!/bin/sh\nmkdir "$6" && cp {self.folder}/import.jsonl "$6"\n')
        program.chmod(0o755)
        found = publish.overlapping(self.folder, program, Path("somewhere"))
        self.assertEqual(found, {"t2"})

    def test_the_package_datasets_loads_it_with_one_schema(self) -> None:
        self.published()
        python = os.environ.get("MC_DATASETS_PYTHON", sys.executable)
        done = subprocess.run([python, str(LOADER), str(self.out)], capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest(f"{python}: {done.stdout.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn("rl test 1", done.stdout)

    def test_a_folder_that_is_no_data_set(self) -> None:
        self.assertEqual(publish.main([str(self.out), "--out", str(self.out)]), 2)


if __name__ == "__main__":
    unittest.main()
