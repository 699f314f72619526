# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
import random
import unittest
from typing import Any

import torch

from harness.judge.closeness import BOUND_FACTOR, error_bound_of, is_ill_conditioned
from harness.judge.compare import DETAIL_MAX, TOLERANCES, Comparer
from harness.judge.reference import ErrorBounds, Outcome, failures

COMPARER = Comparer(TOLERANCES)


def slow_wrong(expected: list[float], got: list[float], fine: list[float] | None, t: float) -> int:
    """The number of wrong elements, computed one by one from the definition."""
    finite = [abs(x) for x in expected if math.isfinite(x)]
    rms = math.sqrt(math.fsum(x * x for x in finite) / len(finite)) if finite else 0.0
    error_bounds = [0.0] * len(expected)
    if fine is not None:
        both = [math.isfinite(x) and math.isfinite(y) for x, y in zip(expected, fine)]
        error_bounds = [abs(x - y) if ok else 0.0 for x, y, ok in zip(expected, fine, both)]
        telling = [d for x, d in zip(expected, error_bounds) if math.isfinite(x) and (x or d)]
        error_bound_rms = math.sqrt(math.fsum(d * d for d in telling) / max(1, len(telling)))
        error_bounds = [max(d, error_bound_rms) for d in error_bounds]
    wrong = 0
    for want, have, error_bound in zip(expected, got, error_bounds):
        if math.isnan(want):
            wrong += not math.isnan(have)
        elif math.isinf(want):
            wrong += want != have
        else:
            allowed = t * max(abs(want), rms) + BOUND_FACTOR * error_bound
            wrong += not abs(want - have) <= allowed
    return wrong


class AgainstTheSlowTwin(unittest.TestCase):
    def test_random_tensors(self) -> None:
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        special = [math.nan, math.inf, -math.inf, 0.0]
        for _ in range(300):
            size = rng.randrange(1, 30)
            scale = 10.0 ** rng.randrange(-3, 4)
            want = [rng.choice(special) if rng.random() < 0.1 else rng.gauss(0, scale)
                    for _ in range(size)]  # fmt: skip
            spread = 10.0 ** rng.randrange(-7, -2)
            have = [x + scale * spread * rng.gauss(0, 1) for x in want]
            if rng.random() < 0.2:
                have[rng.randrange(size)] = rng.choice(special)
            expected = torch.tensor(want, dtype=torch.float64)
            got = torch.tensor(have, dtype=torch.float64)
            fine = None
            if rng.random() < 0.5:
                fine = expected * (1 + 1e-5 * torch.randn(size, dtype=torch.float64))
            table = Comparer({"float64": 1e-4})
            error_bound = None if fine is None else error_bound_of(expected, [fine])
            found = table.failures(expected, got, error_bound)
            count = found[0]["num_wrong"] if found else 0
            twin = slow_wrong(want, have, None if fine is None else fine.tolist(), 1e-4)
            self.assertEqual(count, twin, f"seed {seed}")


class FormTest(unittest.TestCase):
    def problems(self, expected: Any, got: Any) -> list[str]:
        return [item["problem"] for item in COMPARER.failures(expected, got, None)]

    def test_form_is_exact(self) -> None:
        x = torch.ones(4, 5)
        cases: list[tuple[Any, Any, list[str]]] = [
            (x, x.clone(), []),
            (x, x[0], ["shape"]),
            (x, x.sum().reshape(1, 1), ["shape"]),
            (x, x.double(), ["dtype"]),
            (x, [x], ["structure"]),
            ([x, x], (x, x), ["structure"]),
            ((x, x), (x,), ["structure"]),
            ({"a": x}, {"b": x}, ["structure"]),
            ({"a": x, "b": x}, {"b": x, "a": x}, []),
            ([x, [x]], [x, [x + 1]], ["value"]),
            (None, None, []),
            (None, 0, ["structure"]),
            (1, True, ["structure"]),
            (3, 4, ["value"]),
            (0.5, 0.5 + 1e-6, []),
            (0.5, 0.6, ["value"]),
        ]
        for expected, got, problems in cases:
            with self.subTest(f"{expected} {got}"):
                self.assertEqual(self.problems(expected, got), problems)

    def test_the_keys_that_differ_are_named(self) -> None:
        x = torch.ones(2)
        cases: list[tuple[dict[Any, torch.Tensor], str]] = [
            ({"b": x}, "lacks the key 'a' and has the key 'b', which the reference has not"),
            ({}, "lacks the key 'a'"),
            ({"a": x, **{number: x for number in range(7)}}, "the keys 0, 1, 2, 3, 4 and 2 more,"),
            ({"a": x, "k" * 5000: x}, "has the key 'kkk"),
        ]
        for got, words in cases:
            [check] = COMPARER.failures({"a": x}, got, None)
            self.assertIn(words, check["detail"])
            self.assertLess(len(check["detail"]), 200)

    def test_a_text_of_any_size_gives_a_short_detail(self) -> None:
        [check] = COMPARER.failures("text", "\N{BULLET}" * (1 << 20), None)
        self.assertLessEqual(len(check["detail"]), DETAIL_MAX)

    def test_integers_and_bools_are_exact(self) -> None:
        big = torch.tensor([1 << 60, 2])
        self.assertEqual(self.problems(big, big.clone()), [])
        self.assertEqual(self.problems(big, big + torch.tensor([1, 0])), ["value"])
        mask = torch.tensor([True, False])
        self.assertEqual(self.problems(mask, ~mask), ["value"])

    def test_specials_stand_in_place(self) -> None:
        x = torch.tensor([1.0, math.nan, math.inf, -math.inf])
        self.assertEqual(self.problems(x, x.clone()), [])
        for place, value in ((0, math.nan), (0, math.inf), (1, 1.0), (2, -math.inf), (3, 3e38)):
            y = x.clone()
            y[place] = value
            with self.subTest(f"{place} {value}"):
                self.assertEqual(self.problems(x, y), ["nonfinite"])

    def test_complex_parts_are_compared(self) -> None:
        x = torch.randn(5, dtype=torch.complex64)
        self.assertEqual(self.problems(x, x.clone()), [])
        self.assertEqual(self.problems(x, x.conj().resolve_conj() + 0.1j), ["value"])


class ToleranceTest(unittest.TestCase):
    def test_the_candidate_cannot_widen_it(self) -> None:
        expected = torch.full((100,), 1e-3)
        got = expected.clone()
        got[0] = 1e6
        self.assertEqual(len(COMPARER.failures(expected, got, None)), 1)

    def test_zeros_are_not_within_an_absolute_allowance(self) -> None:
        expected = torch.randn(100) * 1e-7
        self.assertEqual(len(COMPARER.failures(expected, torch.zeros(100), None)), 1)

    def test_numbers_that_are_not_normal_have_few_bits(self) -> None:
        expected = torch.zeros(100)
        expected[3] = 4.344e-44
        got = expected.clone()
        got[3] = 4.204e-44
        self.assertEqual(COMPARER.failures(expected, got, None), [])
        self.assertEqual(COMPARER.failures(expected, torch.zeros(100), None), [])
        got[3] = 2e-38
        self.assertEqual(len(COMPARER.failures(expected, got, None)), 1)
        half = torch.full((100,), 1e-5, dtype=torch.float16)
        self.assertEqual(len(COMPARER.failures(half, torch.zeros_like(half), None)), 1)

    def test_half_precision_has_its_own(self) -> None:
        x = torch.ones(10, dtype=torch.float16)
        self.assertEqual(COMPARER.failures(x, x * 1.005, None), [])
        self.assertEqual(len(COMPARER.failures(x.float(), x.float() * 1.005, None)), 1)

    def test_an_all_zero_reference_wants_zeros(self) -> None:
        self.assertEqual(COMPARER.failures(torch.zeros(3), torch.zeros(3), None), [])
        self.assertEqual(len(COMPARER.failures(torch.zeros(3), torch.full((3,), 1e-9), None)), 1)


class EvidenceTest(unittest.TestCase):
    def test_the_first_mismatches_and_the_histogram(self) -> None:
        expected = torch.ones(3, 4)
        got = expected.clone()
        got[1, 2] = 1.01
        got[2, 3] = 5.0
        [check] = COMPARER.failures(expected, got, None)
        self.assertEqual([m["index"] for m in check["first_mismatches"]], [[1, 2], [2, 3]])
        self.assertEqual(check["first_mismatches"][1]["got"], "5")
        self.assertEqual(check["num_wrong"], 2)
        self.assertEqual(check["num_elements"], 12)
        self.assertAlmostEqual(check["error_max"], 4.0)
        self.assertEqual(check["histogram"], {"10-100": 1, ">=1e4": 1})


class ErrorBound(unittest.TestCase):
    def test_is_the_most_that_any_of_the_others_differs_by(self) -> None:
        expected = torch.tensor([1.0, 2.0, math.inf, 4.0])
        others = [
            torch.tensor([1.5, 2.0, 3.0, math.nan], dtype=torch.float64),
            torch.tensor([1.0, 1.75, 3.0, 4.0]),
        ]
        self.assertEqual(error_bound_of(expected, others).tolist(), [0.5, 0.25, 0.0, 0.0])

    def test_of_a_complex_output_is_that_of_its_parts(self) -> None:
        expected = torch.tensor([1 + 2j])
        self.assertEqual(error_bound_of(expected, [expected + 0.5j]).tolist(), [[0.0, 0.5]])

    def test_what_a_relu_cut_off_does_not_hide_the_rest(self) -> None:
        expected = torch.zeros(1000)
        expected[:2] = torch.tensor([1e-3, 2e-3])
        error_bound = torch.zeros(1000)
        error_bound[1] = 1e-5
        got = expected.clone()
        got[0] += 2e-5
        self.assertEqual(COMPARER.failures(expected, got, error_bound), [])

    def test_is_large_where_a_tolerance_would_be(self) -> None:
        expected = torch.tensor([1.0, 1.0])
        self.assertFalse(is_ill_conditioned(expected, torch.tensor([0.0, 0.02])))
        self.assertTrue(is_ill_conditioned(expected, torch.tensor([0.0, 0.03])))

    def test_is_found_out_where_something_fails_without_it(self) -> None:
        asked = []

        def failures_of(got: float) -> list[Any]:
            def find_error_bounds(_inputs: Any) -> ErrorBounds:
                asked.append(got)
                return ErrorBounds(torch.tensor([0.1, 0.1]))

            expected = torch.tensor([1.0, 1.0])
            outcome = Outcome(expected, {}, False, {}, list, find_error_bounds)
            return failures(outcome, torch.tensor([got, 1.0]), COMPARER)

        self.assertEqual(failures_of(1.0), [])
        self.assertEqual(asked, [])
        self.assertEqual(failures_of(1.3), [])
        self.assertEqual(failures_of(2.0)[0]["num_wrong"], 1)
        self.assertEqual(asked, [1.3, 2.0], "once each")


if __name__ == "__main__":
    unittest.main()
