# SPDX-License-Identifier: Apache-2.0
"""`./run.sh learn --quick`: a model learns, and is the same after kills at any moment.

Runs examples/learn.py with the programs beside $MUSACODER; the verifier is the real one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(os.environ.get("MUSACODER", ROOT / "build/dev/bin/musacoder")).parent
NUM_KILLS = int(os.environ.get("MC_LEARN_KILLS", "2"))
BAD_INPUT = 2
GAIN_MIN = 0.3


# So small that nothing is learned: only that kills change nothing.
TINY = ("--tasks", "16", "--steps", "20", "--held-out", "2", "--tokens-max", "40")


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    """In a process group of its own, so that a kill ends all that it started."""
    script = str(ROOT / "examples/learn.py")
    command = [sys.executable, script, "--quick", "--out", str(folder), *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "MC_BIN": str(BIN)},
    )


def finish(folder: Path, *options: str) -> str:
    process = start(folder, *options)
    told, _ = process.communicate()
    assert process.returncode == 0, told
    return (folder / "report.md").read_text()


def rate(folder: Path, model: str) -> float:
    summary = json.loads((folder / "bench" / model / "summary.json").read_text())
    value = summary["groups"]["all"]["pass_at"]["1"]["value"]
    assert isinstance(value, (int, float))
    return float(value)


@unittest.skipUnless((BIN / "musacoder-learn").exists(), "musacoder-learn is not built")
class Learn(unittest.TestCase):
    def test_a_small_model_learns(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            begin = time.monotonic()
            table = finish(folder)
            print(f"learn --quick: {time.monotonic() - begin:.0f} s\n{table}", file=sys.stderr)
            self.assertGreaterEqual(rate(folder, "trained") - rate(folder, "base"), GAIN_MIN)
            self.assertGreater((folder / "report.png").stat().st_size, 10_000)

    def test_kills_at_any_moment_change_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            begin = time.monotonic()
            table = finish(Path(temporary) / "whole", *TINY)
            seconds = time.monotonic() - begin
            seed = time.time_ns() % 1_000_000
            print(f"moments of the kills: seed {seed}", file=sys.stderr)
            rng = random.Random(seed)
            killed = Path(temporary) / "killed"
            for _ in range(NUM_KILLS):
                process = start(killed, *TINY)
                try:
                    process.communicate(timeout=rng.uniform(0.02, 0.7) * seconds)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
            self.assertEqual(finish(killed, *TINY), table)

    def test_a_folder_of_another_run_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            (Path(temporary) / "mine.txt").write_text("not yours")
            process = start(Path(temporary))
            told, _ = process.communicate()
            self.assertEqual(process.returncode, BAD_INPUT)
            self.assertEqual(len(told.splitlines()), 1, told)
            self.assertIn("holds something else", told)
            self.assertEqual([path.name for path in Path(temporary).iterdir()], ["mine.txt"])


if __name__ == "__main__":
    unittest.main()
