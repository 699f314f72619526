# SPDX-License-Identifier: Apache-2.0
"""The figures that the measurement scripts print, from made-up measurements.

usage: python3 -m unittest discover -s tools/gpu -p '*_test.py'
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import unittest
from pathlib import Path

import do_bench
import repeatability
import self_comparison
from figures import share_interval, table, variation
from measured import case_named


def estimate(median: float, off: float = 0.1) -> dict[str, float]:
    return {"median": median, "low": median - off, "high": median + off}


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


class Summaries(unittest.TestCase):
    def test_repeatability(self) -> None:
        runs = [
            {"time_us": estimate(time), "speedup_eager": estimate(2.0)}
            for time in (9.0, 10.0, 11.0)
        ]
        figures = repeatability.summary("k", runs)
        self.assertAlmostEqual(figures["time_variation"], 0.1)
        self.assertAlmostEqual(figures["interval_half_width"], 0.01)
        self.assertEqual(figures["speedup_variation"], 0)
        self.assertEqual(len(repeatability.row(figures)), len(repeatability.HEADS))

    def test_self_comparison_counts_intervals_with_both_ends(self) -> None:
        tries = [
            {"median": 1.0, "low": 0.9, "high": 1.1},
            {"median": 1.1, "low": 1.0, "high": 1.2},
            {"median": 0.9, "low": 0.8, "high": 1.0},
            {"median": 1.2, "low": 1.1, "high": 1.3},
            {"median": 0.7, "low": 0.6, "high": 0.8},
        ]
        figures = self_comparison.summary("k", tries)
        self.assertEqual(figures["contain_one"], 3)
        self.assertAlmostEqual(figures["share"], 0.6)
        self.assertAlmostEqual(figures["off_max"], 0.3)
        self.assertEqual(len(self_comparison.row(figures)), len(self_comparison.HEADS))

    def test_do_bench_relates_the_two_speedups(self) -> None:
        figures = {"do_bench_eager_us": 8.0, "do_bench_own_us": 4.0, "kernels_own_us": 1.5}
        figures["kernels_eager_us"] = 3.0
        performance = {
            "speedup_eager": estimate(2.2),
            "time_us": estimate(1.75),
            "time_eager_us": estimate(3.9),
        }
        found = do_bench.compared("k", figures, performance)
        self.assertAlmostEqual(found["ratio"], 1.1)
        self.assertAlmostEqual(found["over_kernels_us"], 0.25)
        self.assertEqual(len(do_bench.row(found)), len(do_bench.HEADS))


class Defaults(unittest.TestCase):
    def test_the_corpus_has_them(self) -> None:
        for script in (repeatability, self_comparison, do_bench):
            for name in script.CANDIDATES:
                self.assertEqual(case_named(name).name, name)


class Artifacts(unittest.TestCase):
    def test_only_what_nvcc_compiled_is_taken(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for number, kernels in (("1", [{"name": "k"}]), ("2", [])):
                home = Path(folder) / number
                home.mkdir()
                manifest = {"key": "key" + number, "name": "swish", "kernels": kernels}
                (home / "manifest.json").write_text(json.dumps(manifest))
            found = do_bench.compiled_extensions(Path(folder))
            self.assertEqual(found, {"key1": Path(folder) / "1" / "swish.so"})

    def test_tasks_of_the_project_are_found_by_name(self) -> None:
        for name in do_bench.CANDIDATES:
            self.assertIn("class Model", do_bench.task_source(name))


if __name__ == "__main__":
    unittest.main()
