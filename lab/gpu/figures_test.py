# SPDX-License-Identifier: Apache-2.0
"""The figures that the measurement scripts print, from made-up measurements.

usage: python3 -m unittest discover -s lab/gpu -p '*_test.py'
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import race_check
import repeatability  # It finds the modules of tests/.
from figures import half_width, share_interval, table, variation
from corpus_sets import case_named
from expectation import Json


def estimate(median: float, off: float = 0.1) -> dict[str, float]:
    return {"median": median, "low": median - off, "high": median + off}


def performance(time_us: float, speedup: dict[str, float]) -> Json:
    """The performance in a verdict."""
    return {
        "time_us": estimate(time_us),
        "time_eager_us": estimate(time_us),
        "speedup_eager": speedup,
    }


class Variation(unittest.TestCase):
    def test_it_is_the_deviation_as_a_share_of_the_mean(self) -> None:
        self.assertAlmostEqual(variation([9.0, 10.0, 11.0]), 0.1)
        self.assertEqual(variation([3.0, 3.0]), 0)

    def test_one_value_has_none(self) -> None:
        self.assertTrue(math.isnan(variation([1.0])))


class ShareInterval(unittest.TestCase):
    def test_known_values(self) -> None:
        # Newcombe (1998), table I: 81 of 263, by the score method.
        low, high = share_interval(81, 263)
        self.assertAlmostEqual(low, 0.2553, places=4)
        self.assertAlmostEqual(high, 0.3662, places=4)

    def test_it_stays_between_0_and_1(self) -> None:
        for hits, tries in ((0, 20), (20, 20), (0, 1), (1, 1)):
            with self.subTest(hits=hits, tries=tries):
                low, high = share_interval(hits, tries)
                self.assertTrue(-1e-12 <= low <= hits / tries <= high <= 1 + 1e-12)

    def test_it_contains_the_truth_as_often_as_it_says(self) -> None:
        drawn = random.Random(1)
        hits = 0
        for _ in range(1000):
            count = sum(drawn.random() < 0.95 for _ in range(100))
            low, high = share_interval(count, 100)
            hits += low <= 0.95 <= high
        self.assertGreater(hits, 920)


class Table(unittest.TestCase):
    def test_text_stands_left_and_numbers_right(self) -> None:
        rows = [["swish", 7, 2.5], ["a", 123, 10.0]]
        lines = table(("name", "n", "us"), rows).splitlines()
        self.assertEqual(lines[0], "name     n     us")
        self.assertEqual(lines[1], "swish    7  2.500")
        self.assertEqual(lines[2], "a      123  10.00")

    def test_it_may_be_empty(self) -> None:
        self.assertEqual(table(("a", "b"), []), "a  b")


class HalfWidth(unittest.TestCase):
    def test_it_is_a_share_of_the_median(self) -> None:
        self.assertAlmostEqual(half_width({"median": 10.0, "low": 9.5, "high": 12.5}), 0.15)


class Repeatability(unittest.TestCase):
    def figures_of(self, *performances: Json) -> dict[str, Any]:
        return dict(zip(repeatability.HEADS, repeatability.row("k", performances), strict=True))

    def test_times_and_their_variation(self) -> None:
        figures = self.figures_of(
            performance(9.0, estimate(1.0)),
            performance(10.0, estimate(1.0)),
            performance(11.0, estimate(1.0)),
        )
        self.assertEqual(figures["tries"], 3)
        self.assertEqual(figures["time us"], 10.0)
        self.assertAlmostEqual(figures["variation %"], 10)
        self.assertAlmostEqual(figures["interval ± %"], 100 * (0.1 / 9 + 0.01 + 0.1 / 11) / 3)

    def test_intervals_contain_their_ends(self) -> None:
        speedups = (
            {"median": 1.0, "low": 0.9, "high": 1.1},
            {"median": 1.1, "low": 1.0, "high": 1.2},
            {"median": 0.9, "low": 0.8, "high": 1.0},
            {"median": 1.2, "low": 1.1, "high": 1.3},
            {"median": 0.7, "low": 0.6, "high": 0.8},
        )
        figures = self.figures_of(*(performance(9.0, speedup) for speedup in speedups))
        self.assertEqual(figures["contain 1"], 3)
        self.assertAlmostEqual(figures["off by %"], 30)

    def test_a_verdict_has_the_fields_that_are_read(self) -> None:
        schema = json.loads((repeatability.ROOT / "docs/verdict.schema.json").read_text())
        fields = schema["$defs"]["performance"]["properties"]
        self.assertLessEqual(set(performance(1.0, estimate(1.0))), set(fields))

    def test_the_last_line_adds_up_all_candidates(self) -> None:
        line = repeatability.conclusion(81, 263)
        self.assertEqual(line, "contain 1: 81 of 263, 30.8 % (95 %: 25.5 to 36.6 %)")
        self.assertEqual(repeatability.conclusion(0, 0), "nothing was measured")

    def test_the_corpus_has_what_is_measured_by_default(self) -> None:
        for name in repeatability.CANDIDATES:
            self.assertEqual(case_named(name).name, name)


class Script(unittest.TestCase):
    """The script with a verifier that measures the same figures for all."""

    VERIFIER = """#!/usr/bin/env python3
import json, sys
words = sys.argv
answers, out = words[words.index("--candidate") + 1], words[words.index("--out") + 1]
assert words[words.index("--baseline") + 1] == "candidate"
with open(answers) as lines, open(out, "w") as results:
    for line in map(json.loads, lines):
        estimate = {"median": 1.0, "low": 0.9, "high": 1.1}
        outcome = {"kind": "pass", "performance": {"time_us": estimate, "speedup_eager": estimate}}
        if line["sample"].endswith("swish 1"):
            outcome = {"kind": "infra", "reason": "as the test wants it"}
        name = line["task"] + "#" + line["sample"]
        results.write(json.dumps({"verdict": {"candidate": name, "outcome": outcome}}) + "\\n")
"""

    def test_a_try_that_was_not_measured_is_told_and_missing(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            verifier, out = Path(folder) / "musacoder", Path(folder) / "out.json"
            verifier.write_text(self.VERIFIER)
            verifier.chmod(0o755)
            script = Path(repeatability.__file__)
            options = ["--musacoder", str(verifier), "--tries", "3", "--out", str(out)]
            names = ["elementwise/swish", "softmax/softmax_rows"]
            done = subprocess.run(
                [sys.executable, str(script), *options, *names], capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("elementwise/swish 1: not measured: infra", done.stdout)
            self.assertIn("contain 1: 5 of 5", done.stdout)
            self.assertEqual([len(tried) for tried in json.loads(out.read_text()).values()], [2, 3])


class RaceCheck(unittest.TestCase):
    """The script with a verifier that finds a race in the second candidate of three."""

    VERIFIER = """#!/usr/bin/env python3
import json, sys
words = sys.argv
answers, out = words[words.index("--candidate") + 1], words[words.index("--out") + 1]
is_on = words[words.index("--race-check") + 1] == "on"
checks = [("clean", "pass", ""), ("found", "wrong", ""), ("not_run", "pass", "no wgmma")]
with open(answers) as lines, open(out, "w") as results:
    for line, (state, kind, reason) in zip(map(json.loads, lines), checks, strict=True):
        check = {"state": state if is_on else "off", "reason": reason, "seconds": 2.0}
        trial = {"findings": [{"kind": "global_race"}]}
        outcome = {"kind": kind, "trials": [trial]} if is_on else {"kind": "pass", "trials": []}
        stages = [{"stage": "wait.race_check", "ms": 500}] if is_on else []
        verdict = {"task": line["task"], "candidate": "0", "outcome": outcome}
        verdict["telemetry"] = {"race_check": check, "stages": stages}
        results.write(json.dumps({"verdict": verdict}) + "\\n")
"""

    def test_both_runs_are_compared(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            verifier, out = Path(folder) / "musacoder", Path(folder) / "out.json"
            verifier.write_text(self.VERIFIER)
            verifier.chmod(0o755)
            candidates = Path(folder) / "candidates/family"
            candidates.mkdir(parents=True)
            for name in ("a", "b", "c"):
                (candidates / f"{name}.py").write_text("class ModelNew: pass")
            options = ["--musacoder", str(verifier), "--out", str(out), str(candidates.parent)]
            done = subprocess.run(
                [sys.executable, race_check.__file__, *options], capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = done.stdout.splitlines()
            self.assertEqual(lines[0], "family/b 0: pass -> wrong (global_race)")
            self.assertEqual(lines[1], "family/c 0: pass, not checked: no wgmma")
            self.assertEqual(lines[2], "off: pass 3; race check: off 3")
            self.assertEqual(
                lines[3], "on: pass 2, wrong 1; race check: clean 1, found 1, not_run 1"
            )
            self.assertEqual([len(one) for one in json.loads(out.read_text()).values()], [3, 3])


if __name__ == "__main__":
    unittest.main()
