# SPDX-License-Identifier: Apache-2.0
"""`musacoder forge` as a user sees it: files, repetition, going on after a stop, errors."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

from program import MUSACODER, run

FILES = ("forge.json", "sft.jsonl", "rl.jsonl", "test.jsonl", "unit_tests.jsonl")
SETTINGS = ("--tasks", "12", "--seed", "5", "--families", "all", "--bugs", "--test-share", "0.3",
            "--lessons-share", "1", "--variants-share", "0.3", "--unit-tests",
            "--style", "full")  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = os.environ.get("MC_PYTHON", sys.executable)


def forge(out: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run("forge", "--out", out, *arguments, env={**os.environ, **environment})


def has_chunk(out: Path) -> bool:
    """True if an unfinished run has kept something; False until its store is made."""
    address = f"file:{out}/store.sqlite?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as store:
            return bool(store.execute("SELECT count(*) FROM text").fetchone()[0])
    except sqlite3.OperationalError:
        return False


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Forge(unittest.TestCase):
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        done = forge(cls.folder / "first", *SETTINGS, "--audit-share", "0.05")
        assert done.returncode == 0, done.stderr

    def test_the_data_sets_have_the_columns_that_trainers_read(self) -> None:
        first = self.folder / "first"
        made = json.loads((first / "forge.json").read_text())
        self.assertEqual(made["counts"]["tasks"], 12)
        asked = {name: made["settings"].get(name) for name in ("tasks", "samples", "dialect")}
        self.assertEqual(asked, {"tasks": 12, "samples": None, "dialect": "cuda"})
        self.assertEqual(made["settings"]["audit_share"], 0.05)
        self.assertEqual(made["errors"], [])
        kinds = set()
        for row in rows(first / "sft.jsonl"):
            self.assertEqual(row["messages"][-1]["role"], "assistant")
            kinds.add(row["kind"])
        wanted = {"generation", "review", "repair", "retry", "question", "variants"}
        self.assertEqual(kinds, wanted)
        for name in ("rl.jsonl", "test.jsonl"):
            for row in rows(first / name):
                self.assertEqual(row["label"], row["reward_model"]["ground_truth"])
                self.assertIn(row["label"], row["prompt"][-1]["content"])
                self.assertEqual(row["metadata"], row["extra_info"])
                self.assertEqual((row["dialect"], row["metadata"]["dialect"]), ("cuda", "cuda"))

    def test_no_statement_of_a_text_is_false_of_the_code(self) -> None:
        """The reader has the rows alone (lab/texts/text_truth.py)."""
        truth = ROOT / "lab/texts/text_truth.py"
        command = [PYTHON, truth, self.folder / "first/sft.jsonl", "--texts", "40", "--show", "9"]
        done = subprocess.run(command,
                              capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = re.search(r"checked statements a text: ([\d.]+); false: 0 ", done.stdout)
        assert found is not None, done.stdout
        self.assertGreaterEqual(float(found[1]), 5)

    def test_a_finished_run_is_published(self) -> None:
        hub = self.folder / "hub"
        done = forge(
            self.folder / "first", *SETTINGS, "--audit-share", "0.05", "--publish", str(hub)
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        card = (hub / "README.md").read_text()
        paths = re.findall(r"path: (data/\S+)", card)
        self.assertEqual(
            set(paths), {str(path.relative_to(hub)) for path in hub.glob("data/*/*.jsonl")}
        )
        columns = {tuple(row) for path in paths for row in rows(hub / path)}
        self.assertEqual(len(columns), 1)
        texts = [
            row["messages"][-1]["content"] for row in rows(hub / "data/generation/train.jsonl")
        ]
        self.assertTrue(all(text.startswith("<think>\n") for text in texts))

    def test_unit_tests_give_the_outputs_of_each_task(self) -> None:
        first = self.folder / "first"
        counts = json.loads((first / "forge.json").read_text())["counts"]
        found = rows(first / "unit_tests.jsonl")
        self.assertEqual(len({row["task"] for row in found}), len(found))
        self.assertEqual(sum(len(row["tests"]) for row in found), counts["unit_tests"])
        self.assertGreater(counts["unit_tests"], counts["tasks"])
        for row in found:
            for test in row["tests"]:
                for array in test["inputs"] + test["outputs"]:
                    self.assertEqual(len(array["values"]), math.prod(array["shape"]))

    def test_no_held_out_task_is_trained_on(self) -> None:
        first = self.folder / "first"
        held_out = {row["id"] for row in rows(first / "test.jsonl")}
        self.assertFalse(held_out & {row["task"] for row in rows(first / "sft.jsonl")})
        self.assertFalse(held_out & {row["id"] for row in rows(first / "rl.jsonl")})
        self.assertEqual({path.stem for path in (first / "tasks/test").iterdir()}, held_out)

    def test_a_run_that_is_killed_goes_on_to_the_same_bytes(self) -> None:
        out = self.folder / "second"
        command = [MUSACODER, "forge", "--out", str(out), *SETTINGS]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 120
            while not has_chunk(out) and time.monotonic() < deadline:
                time.sleep(0.1)
            process.send_signal(signal.SIGKILL)
        done = forge(out, *SETTINGS, "--jobs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in FILES[1:]:
            expected = (self.folder / "first" / name).read_bytes()
            self.assertEqual((out / name).read_bytes(), expected, name)

    def test_another_setting_does_not_go_into_the_same_folder(self) -> None:
        done = forge(self.folder / "first", "--tasks", "12", "--seed", "6")
        self.assertEqual(done.returncode, 2)
        self.assertIn("other settings", done.stderr)

    def test_a_template_that_does_not_compile_is_an_error_and_ends_nothing(self) -> None:
        """A copy of the program's share with one template broken: its other solutions go on."""
        share = self.folder / "prefix/share/musacoder"
        share.mkdir(parents=True)
        own = Path(MUSACODER).resolve().parent.parent
        shutil.copytree(own / "lib", self.folder / "prefix/lib")  # Links out of it may be hidden.
        for room in (own / "share/musacoder").iterdir():
            if room.name != "data":
                (share / room.name).symlink_to(room.resolve())
        shutil.copytree(own / "share/musacoder/data", share / "data")
        kernel = share / "data/forge/templates/unrolled/kernel.cu"
        kernel.write_text(kernel.read_text().replace("int i =", "int i = int i ="))
        done = forge(self.folder / "broken", "--tasks", "2", "--operators", "relu", "--depth", "1",
                     MC_PREFIX=str(self.folder / "prefix"))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("error: solutions of the forge do not compile", done.stderr)
        made = json.loads((self.folder / "broken/forge.json").read_text())
        self.assertEqual(made["counts"]["tasks"], 2)
        self.assertEqual(made["counts"]["solutions_that_do_not_compile"], len(made["errors"]))
        self.assertIn("unrolled", made["errors"][0])

    def test_a_run_for_a_number_of_samples_records_that_number(self) -> None:
        out = self.folder / "sampled"
        done = forge(out, "--samples", "3", "--operators", "relu", "--depth", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        settings = json.loads((out / "forge.json").read_text())["settings"]
        self.assertEqual((settings["samples"], settings.get("tasks")), (3, None))

    def test_variants_need_the_style_that_has_reasons(self) -> None:
        done = forge(self.folder / "none", "--tasks", "1", "--variants-share", "0.5")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--variants-share: variants need --style full", done.stderr)

    def test_a_family_that_is_none(self) -> None:
        done = forge(self.folder / "none", "--tasks", "1", "--families", "poetry")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertFalse((self.folder / "none").exists())


if __name__ == "__main__":
    unittest.main()
