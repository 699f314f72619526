# SPDX-License-Identifier: Apache-2.0
"""The figures that the measurement scripts print, from made-up measurements.

usage: python3 -m unittest discover -s tools/gpu -p '*_test.py'
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import math
import random
import tempfile
import unittest
import unittest.mock
from collections.abc import Callable
from pathlib import Path

import beside_cupti
import conditions
import do_bench
import plain
import repeatability
import serial_cupti
from figures import half_width, share_interval, table, variation
from measured import Json, case_named, cases_named


def estimate(median: float, off: float = 0.1) -> dict[str, float]:
    return {"median": median, "low": median - off, "high": median + off}


def performance(time_us: float, speedup: dict[str, float], *kernels_us: float) -> Json:
    """Of a verdict, with one kernel for each time."""
    return {
        "time_us": estimate(time_us),
        "time_eager_us": estimate(time_us),
        "speedup_eager": speedup,
        "kernels": [{"name": "k", "time_us": kernel_us} for kernel_us in kernels_us],
        "timing": {"retaken": 3, "notes": []},
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

    def test_times_beside_those_of_all_kernels(self) -> None:
        figures = self.summary_of(
            performance(9.0, estimate(1.0), 6.0, 1.0),
            performance(10.0, estimate(1.0), 6.0, 2.0),
            performance(11.0, estimate(1.0), 6.0, 5.0),
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


class DoBench(unittest.TestCase):
    FIGURES = {
        "candidate": "k",
        "do_bench_eager_us": 8.0,
        "do_bench_own_us": 4.0,
        "do_bench_eager_noise": 0.03,
        "do_bench_own_noise": 0.04,
    }

    def test_the_two_speedups_are_related(self) -> None:
        figures = do_bench.combined([self.FIGURES, self.FIGURES])
        found = do_bench.compared(figures, performance(1.75, estimate(2.2), 1.0, 0.5))
        self.assertAlmostEqual(found["ratio"], 1.1)
        self.assertEqual(found["kernels_us"], 1.5)
        self.assertEqual(found["timing"], {"retaken": 3, "notes": []})
        self.assertAlmostEqual(found["noise"], 0.05)
        self.assertEqual(len(do_bench.row(found)), len(do_bench.HEADS))

    def test_processes_that_differ_are_noise_too(self) -> None:
        found = do_bench.combined([self.FIGURES, {**self.FIGURES, "do_bench_own_us": 4.4}])
        self.assertAlmostEqual(found["do_bench_own_us"], 4.2)
        self.assertAlmostEqual(found["noise"], 0.1)

    def test_they_agree_within_noise_and_half_the_interval(self) -> None:
        # The ratio is 1.1, or 0.9, and the noise 0.05.
        for speedup, off, agree in (
            (2.2, 0.120, True),
            (2.2, 0.100, False),
            (1.8, 0.095, True),
            (1.8, 0.085, False),
        ):
            with self.subTest(speedup=speedup, off=off):
                figures = do_bench.combined([self.FIGURES, self.FIGURES])
                found = do_bench.compared(figures, performance(1.75, estimate(speedup, off)))
                self.assertEqual(found["agree"], agree)

    def test_the_noise_is_within_calls_or_between_copies(self) -> None:
        within = [[10.0, 9.5, 11.5], [10.1, 10.0, 10.2]]
        self.assertAlmostEqual(do_bench.with_noise(within)[1], 2.0 / 10.05)
        between = [[10.0, 9.9, 10.1], [12.0, 11.9, 12.1], [13.0, 12.9, 13.1]]
        self.assertEqual(do_bench.with_noise(between), (12.0, 0.25))

    def test_inputs_are_copied_as_far_as_memory_allows(self) -> None:
        gib = 1 << 30
        for nbytes, count in ((0, 3), (gib, 3), (5 * gib, 2), (20 * gib, 1)):
            with self.subTest(nbytes=nbytes):
                self.assertEqual(do_bench.num_copies(nbytes), count)


class Defaults(unittest.TestCase):
    def test_the_corpus_has_them(self) -> None:
        for script in (repeatability, do_bench):
            for name in script.CANDIDATES:
                self.assertEqual(case_named(name).name, name)

    def test_a_name_that_the_corpus_does_not_have_is_told(self) -> None:
        parser = argparse.ArgumentParser(exit_on_error=False)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertRaises(SystemExit, cases_named, parser, ["honest_spin", "nosuch"])
        self.assertIn("error: the corpus has no candidate nosuch", told.getvalue())


class Artifacts(unittest.TestCase):
    def test_only_what_nvcc_compiled_is_taken(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for number, kernels in (("1", [{"name": "k"}]), ("2", [])):
                home = Path(folder) / number
                home.mkdir()
                manifest = {"key": "key" + number, "name": "swish", "kernels": kernels}
                (home / "manifest.json").write_text(json.dumps(manifest))
            found = plain.compiled_extensions(Path(folder))
            self.assertEqual(found, {"key1": Path(folder) / "1" / "swish.so"})

    def test_only_what_is_not_compiled_is_built(self) -> None:
        load = plain.loader(
            build=lambda key: f"built {key}",
            normal_form=lambda args, kwargs: {"key": args[0]},
            compiled={"json": Path("not/a/library.so")},
        )
        self.assertEqual(load("a"), "built a")
        self.assertRaises(ImportError, load, "json")

    def test_tasks_of_the_project_are_found_by_name(self) -> None:
        for name in do_bench.CANDIDATES:
            self.assertIn("class Model", plain.task_source(name))


class BesideCupti(unittest.TestCase):
    PERFORMANCE: Json = {
        "time_us": estimate(10.1),
        "time_eager_us": estimate(30),
        "timing": {"gap_us": 1.1, "gap_eager_us": 1.2},
    }

    @staticmethod
    def kernels(launches: float, kernel_us: float) -> Json:
        return {
            "launches": launches,
            "profiled_us": [[kernel_us] * 3] * 2,
            "serial_us": [],
            "untraced_us": [kernel_us + 1] * 2,
            "traced_us": [kernel_us + 2] * 2,
        }

    def found(self, own: Json, eager: Json) -> list[Json]:
        plain_figures = {"own": beside_cupti.pooled([own]), "eager": beside_cupti.pooled([eager])}
        return list(beside_cupti.compared("k", self.PERFORMANCE, plain_figures))

    def test_only_models_of_one_kernel_are_compared(self) -> None:
        found = self.found(self.kernels(1, 10), self.kernels(2, 14))
        self.assertEqual([figures["model"] for figures in found], ["own"])
        self.assertAlmostEqual(found[0]["off"], 0.01)
        self.assertEqual(beside_cupti.conclusion(found), "1 of 1 within 2 % of CUPTI")

    def test_rounds_of_several_processes_count_alike(self) -> None:
        pooled = beside_cupti.pooled([self.kernels(1, kernel_us) for kernel_us in (10, 11)])
        self.assertEqual((pooled["kernel_us"], pooled["mode"]), (10.5, "concurrent"))
        self.assertEqual(pooled["rounds"]["untraced_us"], [11, 11, 12, 12])
        self.assertEqual(len(pooled["rounds"]["profiled_us"]), 4)
        self.assertAlmostEqual(pooled["spread"], 1 / 10.5)
        self.assertEqual(beside_cupti.pooled([{"launches": 2}, {"launches": 2}]), {"launches": 2})

    def test_what_both_modes_measured_is_compared_with_the_serial_one(self) -> None:
        own = {**self.kernels(1, 11), "serial_us": [[10.0] * 3] * 2}
        found = self.found(own, self.kernels(1, 30))
        self.assertEqual([figures["mode"] for figures in found], ["serial", "concurrent"])
        self.assertAlmostEqual(found[0]["off"], 0.01)
        self.assertEqual(beside_cupti.row(found[0])[9:11], [12, 13])

    def test_what_is_off_by_more_is_counted(self) -> None:
        found = self.found(self.kernels(1, 10), self.kernels(1, 29))
        self.assertEqual(beside_cupti.conclusion(found), "1 of 2 within 2 % of CUPTI")

    def test_calls_that_take_longer_count_but_a_disturbed_round_does_not(self) -> None:
        found = beside_cupti.of_rounds([[1, 1, 1, 5], [9, 9, 9, 9], [1, 1, 1, 5], [1, 1, 1, 5]])
        self.assertEqual((found["kernel_us"], found["spread"]), (2, 0))

    def test_the_middle_half_of_the_rounds_is_averaged(self) -> None:
        found = beside_cupti.of_rounds([[mean] for mean in (100, 1, 2, 4, 0, 3, 2, 3)])
        self.assertEqual((found["kernel_us"], found["spread"]), (2.5, 0.4))
        self.assertEqual(beside_cupti.of_rounds([[1], [2]])["kernel_us"], 1.5)

    def test_places_are_the_tenths_of_a_round_over_all_rounds(self) -> None:
        rounds = [[8.0] * 10 + [10.0] * 80 + [13.0] * 10 for _ in range(3)]
        rounds[1][:10] = [9.5] * 10
        found = beside_cupti.of_rounds(rounds)
        self.assertEqual(found["places_us"], [8.5, *[10] * 8, 13])
        self.assertAlmostEqual(found["places_spread"], 4.5 / found["kernel_us"])

    def test_each_call_of_a_short_round_is_a_place(self) -> None:
        self.assertEqual(beside_cupti.places_us([[1, 4, 2], [3, 4, 2]]), [2, 4, 2])

    def test_a_round_has_the_calls_that_memory_has_room_for(self) -> None:
        self.assertEqual(beside_cupti.num_calls(1), 400)
        self.assertEqual(beside_cupti.num_calls(1 << 28), 16)
        self.assertEqual(beside_cupti.num_calls(1 << 40), 1)

    def test_each_round_has_other_values_in_the_same_places(self) -> None:
        import torch

        drawn = [[torch.tensor([float(call)]), [torch.tensor([10.0 + call])]] for call in range(3)]
        inputs = [[torch.zeros(1), [torch.zeros(1)]] for _ in range(3)]
        places = [each[0].data_ptr() for each in inputs]
        for number, wanted in enumerate(([0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2])):
            inputs[0][0] += 7  # Work in place does not outlast a round.
            beside_cupti.give_values(inputs, drawn, number)
            self.assertEqual([each[0].item() for each in inputs], wanted)
            self.assertEqual([each[1][0].item() - 10 for each in inputs], wanted)
        self.assertEqual([each[0].data_ptr() for each in inputs], places)

    def test_verdicts_that_were_kept_are_found_by_name(self) -> None:
        lines = [
            {"verdict": {"candidate": f"task#{name}", "outcome": outcome}}
            for name, outcome in (("a", {"performance": {"x": 1}}), ("b", {"kind": "wrong"}))
        ]
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(io.StringIO()) as told,
        ):
            path = Path(folder) / "kept.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            found = beside_cupti.kept_performances(path, ["a", "b"])
        self.assertEqual(found, [{"x": 1}, None])
        self.assertIn("b: ", told.getvalue())


class SerialCupti(unittest.TestCase):
    """What needs no GPU: CUPTI itself reads the records of the buffers that it is given."""

    RECORD_BYTES = 216  # CUpti_ActivityKernel10, of CUDA 13.0.

    def setUp(self) -> None:
        import torch  # noqa: F401  CUPTI is loaded with it.

        self.tracer = serial_cupti._Tracer()

    def completed(self, *spans: tuple[int, int]) -> None:
        """A buffer with a kernel for each, as CUPTI hands it back."""
        address, size, max_records = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(1)
        self.tracer.requested(address, size, max_records)
        self.assertEqual((address.value % 8, max_records.value), (0, 0))
        for number, (start, end) in enumerate(spans):
            place = address.value + number * self.RECORD_BYTES
            kernel = serial_cupti._Kernel.from_address(place)
            kernel.kind, kernel.start, kernel.end = serial_cupti.KIND_KERNEL, start, end
        valid = len(spans) * self.RECORD_BYTES
        self.tracer.completed(None, 0, address, size, valid)

    def kernels_us(self, run: Callable[[], object]) -> list[float]:
        """With a clock of 2100 ticks a microsecond."""
        with (
            unittest.mock.patch.object(self.tracer, "call"),
            unittest.mock.patch.object(self.tracer, "ticks", side_effect=(7000, 217_000)),
            unittest.mock.patch("time.monotonic_ns", side_effect=(500, 100_500)),
        ):
            return self.tracer.kernels_us(run)

    def test_kernels_are_told_in_the_order_they_ran_in(self) -> None:
        found = self.kernels_us(
            lambda: (self.completed((21_000, 22_050), (4200, 10_500)), self.completed((2100, 4200)))
        )
        self.assertEqual(found, [1, 3, 0.5])
        self.assertEqual(self.tracer.buffers, {})

    def test_what_was_traced_before_does_not_count(self) -> None:
        self.completed((1000, 2000))
        self.assertEqual(self.kernels_us(lambda: None), [])

    def test_an_error_of_cupti_is_one(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "cuptiActivityEnable: error"):
            self.tracer.call("cuptiActivityEnable", 0)  # No such kind.


class Conditions(unittest.TestCase):
    def test_a_window_has_the_calls_that_began_in_it(self) -> None:
        calls = [(0.0, 9.0), (0.1, 5.0), (0.2, 7.0), (0.29, 6.0), (0.3, 1.0)]
        self.assertEqual(conditions.median_between(calls, 0.1, 0.3), 6)
        self.assertTrue(math.isnan(conditions.median_between(calls, 0.5, 1)))


if __name__ == "__main__":
    unittest.main()
