# SPDX-License-Identifier: Apache-2.0
"""Tests of the files of real_answers.py, and of its result.

usage: python3 -m unittest discover -s lab/answers -p '*_test.py'
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import real_answers
from expectation import Json  # Found through real_answers.
from real_answers import Answer, InputError, Label

RAW = [
    {"level": 2, "problem_id": 0, "code": "last"},
    {"level": 1, "problem_id": 9, "code": "first to ten\n"},
    {"level": 1, "problem_id": 1, "code": "to two"},
    {"level": 1, "problem_id": 9, "code": "second to ten"},
]
ANSWERS = [
    Answer("1/2/0", "to two"),
    Answer("1/10/0", "first to ten\n"),
    Answer("1/10/1", "second to ten"),
    Answer("2/1/0", "last"),
]
KEYS = [answer.key for answer in ANSWERS]
LABELS = {
    "1/2/0": Label("honest", ""),
    "1/10/0": Label("torch", "the sum is PyTorch's"),
    "1/10/1": Label("wrong", "a race"),
    "2/1/0": Label("honest", ""),
}
PASS: Json = {"kind": "pass"}
PLACE = {"source": "candidate", "line": 7}


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)

    def checkout(self) -> Path:
        path = self.folder / "checkout"
        problems = path / real_answers.ASSETS / "problems"
        problems.mkdir(parents=True)
        (path / real_answers.RAW).write_text(json.dumps(RAW))
        for name in ("l1_p2", "l1_p10", "l2_p1"):
            (problems / f"{name}.py").write_text(f"task {name}")
        return path


class Input(InFolder):
    def test_problems_count_from_one_and_answers_in_the_order_of_the_raw_data(self) -> None:
        self.assertEqual(real_answers.answers_of(RAW), ANSWERS)
        self.assertEqual(ANSWERS[1].task, "kernelbench:1/10")

    def test_what_is_exported_is_what_eval_reads_and_is_read_again(self) -> None:
        real_answers.export(self.checkout(), self.folder / "inputs")
        levels = [
            [(line["level"], line["problem_id"], line["code"]) for line in lines]
            for lines in (
                real_answers.read_lines(self.folder / f"inputs/level{level}.jsonl")
                for level in (1, 2)
            )
        ]
        self.assertEqual(
            levels, [[(1, 2, "task l1_p2"), (1, 10, "task l1_p10")], [(2, 1, "task l2_p1")]]
        )
        lines = real_answers.read_lines(self.folder / "inputs/answers.jsonl")
        self.assertEqual((lines[2]["task"], lines[2]["sample"]), ("kernelbench:1/10", 1))
        self.assertEqual(real_answers.read_exported(self.folder / "inputs"), ANSWERS)

    def test_a_bare_repository_holds_the_same(self) -> None:
        path = self.checkout()
        git = ["git", "-C", str(path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
            subprocess.run([*git, *command], check=True)
        real_answers.export(path / ".git", self.folder / "inputs")
        self.assertEqual(real_answers.read_exported(self.folder / "inputs"), ANSWERS)

    def test_a_path_without_answers_is_one_line(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            self.assertEqual(
                real_answers.main(["export", str(self.folder), str(self.folder / "inputs")]), 2
            )
        self.assertRegex(printed.getvalue(), r"\Areal_answers: no .*/raw_data.json in .*\n\Z")


class Labels(InFolder):
    def read(self, key: str = "1/2/0", **changes: str) -> dict[str, Label]:
        answer = ANSWERS[0]
        entry = {"hash": answer.content_hash, "label": "wrong", "reason": "a race"} | changes
        (self.folder / "labels.json").write_text(json.dumps({key: entry}))
        return real_answers.read_labels(self.folder / "labels.json", [answer])

    def test_an_answer_has_the_label_made_for_its_text(self) -> None:
        self.assertEqual(self.read(), {"1/2/0": Label("wrong", "a race")})

    def test_what_does_not_fit_is_told(self) -> None:
        for changes, message in (
            ({"key": "1/2/1"}, "no label for 1/2/0"),
            ({"hash": "0" * 16}, "1/2/0 is not the text"),
            ({"label": "fine"}, "no label is named 'fine'"),
        ):
            with self.subTest(message), self.assertRaisesRegex(InputError, message):
                self.read(**changes)

    def test_those_of_the_repository_say_why(self) -> None:
        path = Path(real_answers.__file__).with_name("real_answers_labels.json")
        entries = json.loads(path.read_text())
        self.assertEqual(len(entries), 413)
        for key, entry in entries.items():
            with self.subTest(key):
                self.assertRegex(key, r"\A[123]/\d+/\d\Z")
                self.assertIn(entry["label"], real_answers.LABELS)
                self.assertEqual("reason" in entry, entry["label"] != "honest")


class Result(unittest.TestCase):
    def test_a_table_counts_classes_by_label_and_level(self) -> None:
        outcomes = {"1/2/0": {"kind": "timeout"}, "1/10/0": {"kind": "unsupported"}, "2/1/0": PASS}
        self.assertEqual(
            real_answers.counted(LABELS, outcomes, KEYS),
            [
                ["honest", "1", 1, 0, 1, 0, 0, 0],
                ["honest", "2", 1, 1, 0, 0, 0, 0],
                ["honest", "all", 2, 1, 1, 0, 0, 0],
                ["torch", "1", 1, 0, 0, 1, 0, 0],
                ["torch", "all", 1, 0, 0, 1, 0, 0],
                ["wrong", "1", 1, 0, 0, 0, 0, 1],
                ["wrong", "all", 1, 0, 0, 0, 0, 1],
            ],
        )

    def test_surprises_are_listed_with_their_reason(self) -> None:
        diagnostic = {"message": "expected ';'", "location": PLACE}
        outcomes = {
            "1/2/0": {"kind": "compile", "diagnostics": [diagnostic]},
            "1/10/0": PASS,
            "1/10/1": {"kind": "wrong", "trials": []},
            "2/1/0": PASS,
        }
        self.assertEqual(
            list(real_answers.listed(LABELS, outcomes, KEYS)),
            [
                "  honest 1/2/0: compile: expected ';'; candidate:7: expected ';'",
                "  torch 1/10/0 passes: the sum is PyTorch's",
            ],
        )

    def test_the_evidence_of_each_kind_is_told(self) -> None:
        nowhere = {"source": "", "line": 0}
        rule = {"rule": "task.does_not_fit", "message": "random", "location": nowhere}
        finding = {"kind": "shared_race", "detail": "with thread 3", "location": PLACE}
        trial = {"index": 0, "checks": [], "findings": [finding], "inputs_mutated": "x"}
        for outcome, expected in (
            ({"kind": "unsupported", "constructs": [rule]}, "unsupported: random"),
            (
                {"kind": "runtime", "stage": "forward", "findings": [finding]},
                "runtime: forward; shared_race; candidate:7: with thread 3",
            ),
            (
                {"kind": "wrong", "trials": [trial]},
                "wrong: candidate:7: with thread 3; overwrites x",
            ),
            ({"kind": "infra", "message": "no\nmemory"}, "infra: no memory"),
        ):
            with self.subTest(expected):
                self.assertEqual(real_answers.description_of(outcome), expected)

    def missed(self, **outcomes: str) -> list[str]:
        """The bars that are not met; `<label>_<n>` are answers of that label, by outcome."""
        labels = {name: Label(name.split("_")[0], "") for name in outcomes}
        by_name = {name: {"kind": kind} for name, kind in outcomes.items() if kind}
        return real_answers.missed(labels, by_name, list(outcomes))

    def test_a_bar_is_missed_above_it_alone(self) -> None:
        self.assertEqual(self.missed(honest_0="wrong", torch_0="illegal", wrong_0="pass"), [])
        self.assertEqual(
            self.missed(honest_0="wrong", honest_1="timeout"),
            ["missed: 2 honest answers are refused, at most 1 may be"],
        )
        unsupported = {f"honest_{i}": "unsupported" for i in range(13)}
        self.assertEqual(len(self.missed(**unsupported)), 1)
        self.assertEqual(self.missed(**dict(list(unsupported.items())[1:])), [])
        for label, kind in (("torch", "pass"), ("wrong", "infra"), ("honest", "")):
            with self.subTest(label=label, kind=kind):
                self.assertEqual(len(self.missed(**{f"{label}_0": kind})), 1)


if __name__ == "__main__":
    unittest.main()
