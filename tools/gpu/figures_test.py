# SPDX-License-Identifier: Apache-2.0
"""The figures that the measurement scripts print, from made-up measurements.

usage: python3 -m unittest discover -s tools/gpu -p '*_test.py'
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import random
import unittest

import repeatability
from figures import half_width, share_interval, table, variation
from measured import Json, case_named, cases_named


def estimate(median: float, off: float = 0.1) -> dict[str, float]:
    return {"median": median, "low": median - off, "high": median + off}


def performance(time_us: float, speedup: dict[str, float], kernels_us: float = 0.0) -> Json:
    """Of a verdict."""
    return {
        "time_us": estimate(time_us),
        "time_eager_us": estimate(time_us),
        "speedup_eager": speedup,
        "time_kernels_us": kernels_us,
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
    def summary_of(self, *performances: Json) -> Json:
        return repeatability.summary("k", [repeatability.estimates_of(p) for p in performances])

    def test_times_beside_cuptis(self) -> None:
        figures = self.summary_of(
            performance(9.0, estimate(1.0), 7.0),
            performance(10.0, estimate(1.0), 8.0),
            performance(11.0, estimate(1.0), 11.0),
        )
        self.assertEqual(figures["tries"], 3)
        self.assertEqual(figures["time_us"], 10.0)
        self.assertAlmostEqual(figures["time_variation"], 0.1)
        self.assertAlmostEqual(figures["interval_half_width"], (0.1 / 9 + 0.01 + 0.1 / 11) / 3)
        self.assertEqual(figures["kernels_us"], 8.0)
        self.assertAlmostEqual(figures["over_kernels"], 0.25)

    def test_intervals_contain_their_ends(self) -> None:
        speedups = (
            {"median": 1.0, "low": 0.9, "high": 1.1},
            {"median": 1.1, "low": 1.0, "high": 1.2},
            {"median": 0.9, "low": 0.8, "high": 1.0},
            {"median": 1.2, "low": 1.1, "high": 1.3},
            {"median": 0.7, "low": 0.6, "high": 0.8},
        )
        figures = self.summary_of(*(performance(9.0, speedup, 9.0) for speedup in speedups))
        self.assertEqual(figures["contain_one"], 3)
        self.assertAlmostEqual(figures["off_max"], 0.3)
        kept = [one["speedup_eager"] for one in figures["estimates"]]
        self.assertEqual(kept, list(speedups))

    def test_a_row_has_a_cell_under_each_head(self) -> None:
        row = repeatability.row(self.summary_of(performance(9.0, estimate(1.0), 9.0)))
        self.assertEqual(len(row), len(repeatability.HEADS))

    def test_without_kernels_there_is_no_difference_from_them(self) -> None:
        figures = self.summary_of(performance(9.0, estimate(1.0)))
        self.assertTrue(math.isnan(figures["over_kernels"]))

    def test_the_last_line_adds_up_all_candidates(self) -> None:
        line = repeatability.conclusion(
            [{"tries": 200, "contain_one": 61}, {"tries": 63, "contain_one": 20}]
        )
        self.assertEqual(line, "contain 1: 81 of 263, 30.8 % (95 %: 25.5 to 36.6 %)")
        self.assertEqual(repeatability.conclusion([]), "nothing was measured")

    def test_candidates_take_turns_as_long_as_they_have_tries(self) -> None:
        order = [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (2, 2)]
        self.assertEqual(repeatability.interleaved([2, 1, 3]), order)
        self.assertEqual(repeatability.interleaved([]), [])

    def test_a_candidate_may_have_its_own_number_of_tries(self) -> None:
        self.assertEqual(repeatability.with_tries("softmax/rows", 20), ("softmax/rows", 20))
        self.assertEqual(repeatability.with_tries("softmax/rows=50", 20), ("softmax/rows", 50))
        for text in ("k=", "k=0", "k=-1", "k=many", "k=1=2"):
            with self.subTest(text=text), self.assertRaises(argparse.ArgumentTypeError):
                repeatability.with_tries(text, 20)


class Defaults(unittest.TestCase):
    def test_the_corpus_has_them(self) -> None:
        for script in (repeatability,):
            for name in script.CANDIDATES:
                self.assertEqual(case_named(name).name, name)

    def test_a_name_that_the_corpus_does_not_have_is_told(self) -> None:
        parser = argparse.ArgumentParser(exit_on_error=False)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertRaises(SystemExit, cases_named, parser, ["honest_spin", "nosuch"])
        self.assertIn("error: the corpus has no candidate nosuch", told.getvalue())


if __name__ == "__main__":
    unittest.main()
