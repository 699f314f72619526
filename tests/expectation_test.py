# SPDX-License-Identifier: Apache-2.0
"""Tests of the verdicts that an expectation accepts and refuses.

usage: python3 -m unittest discover -s tests -p 'expectation_test.py'
"""

from __future__ import annotations

import unittest
from typing import Any

from corpus_sets import SETS, cases_of, edited
from expectation import Condition, Expectation
from gpu_use import Use
from judging import Judge

PERFORMANCE = {
    "time_us": {"median": 2.5, "low": 2.4, "high": 2.6},
    "timing": {"mode": "enqueued", "tf32": False},
    "own_share": "nan",
    "kernels": [{"name": "k", "owner": "candidate"}],
}
# A condition, and a part of what is wrong; "" = it holds.
CONDITIONS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"field": "time_us.median", "min": 2}, ""),
    ({"field": "time_us.median", "min": 2.5, "max": 2.5}, ""),
    ({"field": "time_us.median", "min": 2.6}, "is 2.5, expected at least 2.6"),
    ({"field": "time_us.median", "max": 2.4}, "is 2.5, expected at most 2.4"),
    ({"field": "timing.mode", "equals": "enqueued"}, ""),
    (
        {"field": "timing.mode", "equals": "host_synchronous"},
        "is 'enqueued', expected 'host_synchronous'",
    ),
    ({"field": "kernels.0.owner", "equals": "candidate"}, ""),
    ({"field": "kernels.1.owner", "equals": "candidate"}, "was not measured"),
    ({"field": "kernels.owner", "equals": "candidate"}, "was not measured"),
    ({"field": "no_such.field", "min": 0}, "was not measured"),
    ({"field": "own_share", "min": 0}, "is 'nan', expected a number"),
    ({"field": "timing.tf32", "min": 0}, "is False, expected a number"),
    ({"field": "timing.mode", "max": 1}, "is 'enqueued', expected a number"),
)


def illegal(*rules: str) -> dict[str, Any]:
    findings = [{"rule": rule, "message": "", "location": {}} for rule in rules]
    return {"outcome": {"kind": "illegal", "when": "run", "findings": findings}}


def passed(performance: object) -> dict[str, Any]:
    return {"outcome": {"kind": "pass", "trials": [], "performance": performance}}


class Conditions(unittest.TestCase):
    def test_each_tells_what_is_wrong_and_no_more(self) -> None:
        for entry, words in CONDITIONS:
            with self.subTest(entry):
                breach = Condition.parse(entry).breach(PERFORMANCE)
                self.assertIn(words, breach)
                self.assertEqual(bool(words), bool(breach))

    def test_what_was_not_measured_at_all_breaks_every_condition(self) -> None:
        for entry, _ in CONDITIONS:
            self.assertIn("was not measured", Condition.parse(entry).breach(None))

    def test_a_misspelt_condition_is_refused(self) -> None:
        for entry in ({"field": "time_us", "atleast": 1}, {"field": "time_us"}, {"min": 1}):
            with self.subTest(entry), self.assertRaises((ValueError, KeyError)):
                Condition.parse(entry)


class Expectations(unittest.TestCase):
    def test_an_outcome_that_is_listed_is_no_surprise(self) -> None:
        expectation = Expectation(("illegal", "pass"))
        self.assertEqual(expectation.surprises(illegal("run.aten")), [])
        self.assertEqual(expectation.surprises(passed(None)), [])

    def test_another_one_is_told_with_its_evidence(self) -> None:
        surprises = Expectation(("pass",)).surprises(illegal("run.aten"))
        self.assertEqual(surprises, ["illegal, expected pass: run; run.aten"])

    def test_an_illegal_candidate_must_have_broken_one_of_the_rules(self) -> None:
        expectation = Expectation(("illegal",), rules=("run.library_*", "link.files"))
        self.assertEqual(expectation.surprises(illegal("run.aten", "run.library_kernel")), [])
        self.assertEqual(len(expectation.surprises(illegal("run.aten"))), 1)

    def test_the_evidence_must_have_the_words(self) -> None:
        diagnostics = [{"message": 'write "musaMalloc"', "location": {"line": 3}}]
        verdict = {"outcome": {"kind": "compile", "diagnostics": diagnostics}}
        self.assertEqual(Expectation(("compile",), says="musaMalloc").surprises(verdict), [])
        self.assertEqual(
            Expectation(("compile",), says="cudaMalloc").surprises(verdict),
            ["compile without 'cudaMalloc': write \"musaMalloc\""],
        )

    def test_a_finding_has_the_text_of_its_line(self) -> None:
        found = {"kind": "global_race", "location": {"excerpt": "  sum += x[i];"}}
        verdict = {"outcome": {"kind": "runtime", "findings": [found]}}
        for line, count in (("", 0), ("x[i]", 0), ("x[j]", 1)):
            expectation = Expectation(("runtime",), finding="global_race", line=line)
            self.assertEqual(len(expectation.surprises(verdict)), count)

    def test_rules_say_nothing_of_other_outcomes(self) -> None:
        expectation = Expectation(("illegal", "pass"), rules=("run.aten",))
        self.assertEqual(expectation.surprises(passed(None)), [])

    def test_conditions_bind_only_what_passes(self) -> None:
        low, high = Condition("time_us.median", low=3), Condition("time_us.median", high=2)
        expectation = Expectation(("illegal", "pass"), performance=(low, high))
        self.assertEqual(expectation.surprises(illegal("run.aten")), [])
        self.assertEqual(len(expectation.surprises(passed(PERFORMANCE))), 2)
        self.assertEqual(len(expectation.surprises(passed(None))), 2)


class Cases(unittest.TestCase):
    def test_every_set_can_be_read(self) -> None:
        for name, cases in SETS.items():
            with self.subTest(name):
                names = [case.name for case in cases()]
                self.assertEqual(len(names), len(set(names)))

    def test_a_pattern_that_no_name_matches_is_an_error(self) -> None:
        found = cases_of(["mutants", "honest"], "*/row_sum")
        self.assertEqual([case.name for case in found["honest"]], ["reduction/row_sum"])
        self.assertEqual(found["mutants"], [])
        self.assertRaisesRegex(LookupError, "family/name", cases_of, ["honest"], "row_sum")

    def test_an_edit_must_fit_once(self) -> None:
        self.assertEqual(edited("a b", [{"find": "a", "replace": "c"}], "case"), "c b")
        for text in ("b", "a a"):
            with self.subTest(text), self.assertRaisesRegex(ValueError, "case"):
                edited(text, [{"find": "a", "replace": "c"}], "case")


class Judging(unittest.TestCase):
    def test_a_missing_program_is_reported_in_one_line(self) -> None:
        judge = Judge("/nosuch/musacoder")
        with self.assertRaisesRegex(SystemExit, "cannot run /nosuch/musacoder"):
            judge.results(SETS["honest"]()[:1])


class Uses(unittest.TestCase):
    def test_only_what_is_new_is_left(self) -> None:
        before = Use.parse("7, other\n", "GPU-1, 500\nGPU-2, [N/A]\n")
        same = Use.parse("7, other\n", "GPU-1, 510\nGPU-2, [N/A]\n")
        after = Use.parse("7, other\n9, python3\n", "GPU-1, 1500\nGPU-2, 3\n")
        self.assertEqual(same.left_since(before), [])
        self.assertEqual(after.left_since(before), ["process 9, python3", "1000 MiB of GPU-1"])


if __name__ == "__main__":
    unittest.main()
