# SPDX-License-Identifier: Apache-2.0
"""The scripts of examples/trainers as dry runs, and the names that they hand to trainers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRAINERS = ROOT / "examples/trainers"
NAME = re.compile(r"\b(musacoder(?:\.\w+)+)\b")


def names_of(module: Path) -> set[str]:
    """What a module defines at its top level."""
    tree = ast.parse(module.read_text())
    found = {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
    found |= {one.name for one in tree.body if isinstance(one, ast.AsyncFunctionDef)}
    return found


class Scripts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = Path(folder.name)

    def script(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "python"),
            "DATA": str(self.data),
            "MODEL": "/checkpoints/model",
            **variables,
        }
        return subprocess.run(
            ["bash", str(TRAINERS / name)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def test_verl_is_given_the_data_and_the_model(self) -> None:
        shown = self.script("verl/train.sh", DRY_RUN="1")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn(f"data.train_files={self.data}/rl.jsonl", shown.stdout)
        self.assertIn("actor_rollout_ref.model.path=/checkpoints/model", shown.stdout)

    def test_slime_is_given_the_data_and_the_model(self) -> None:
        (self.data / "sft.jsonl").write_text("{}\n")
        slime = {"SLIME": "/src/slime", "MEGATRON": "/src/megatron"}
        shown = self.script("slime/sft.sh", DRY_RUN="1", **slime)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("/src/slime/train", shown.stdout)
        self.assertIn("--hf-checkpoint /checkpoints/model ", shown.stdout)
        self.assertIn(str(self.data), shown.stdout)

    def test_what_is_missing_is_named_in_one_line(self) -> None:
        for name, variables, words in [
            ("verl/train.sh", {}, f"DATA: there is no {self.data}/rl.jsonl"),
            ("slime/sft.sh", {"SLIME": "/s", "MEGATRON": "/m", "DRY_RUN": "1"}, "has no row"),
        ]:
            refused = self.script(name, **variables)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertEqual(len(refused.stderr.splitlines()), 1, refused.stderr)
            self.assertIn(words, refused.stderr)

    def test_names_that_trainers_import_are_defined(self) -> None:
        found = 0
        for path in sorted(TRAINERS.rglob("*")):
            if path.suffix not in (".sh", ".yaml"):
                continue
            for dotted in NAME.findall(path.read_text()):
                module, name = dotted.rsplit(".", 1)
                file = ROOT / "python" / Path(*module.split(".")).with_suffix(".py")
                if file.is_file():
                    self.assertIn(name, names_of(file), f"{path}: {dotted}")
                    found += 1
                else:  # A module alone, or a file's name.
                    whole = ROOT / "python" / Path(*dotted.split("."))
                    is_there = whole.with_suffix(".py").is_file() or dotted == "musacoder.yaml"
                    self.assertTrue(is_there, f"{path}: {dotted}")
        self.assertGreater(found, 5)


if __name__ == "__main__":
    unittest.main()
