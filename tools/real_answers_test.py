# SPDX-License-Identifier: Apache-2.0
"""The pure parts of real_answers.py, and that it goes on where it was cut short.

usage: python3 -m unittest discover -s tools -p '*_test.py'
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
from real_answers import Answer, InputError, Judge, Label

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

# Judges as `musacoder eval` does, and notes what it was asked to judge.
FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
arguments = dict(zip(sys.argv[2::2], sys.argv[3::2]))
out = pathlib.Path(arguments["--out"])
lines = [json.loads(line) for line in open(arguments["--candidate"])]
ids = [f"{line['task']}#{line['sample']}" for line in lines]
with open(out.parent / "asked", "a") as asked:
    asked.write(" ".join([arguments.get("--seed", "-"), *ids]) + "\\n")
verdicts = [{"candidate": name, "outcome": {"kind": "pass"}} for name in ids]
out.write_text("".join(json.dumps({"verdict": one}) + "\\n" for one in verdicts))
"""


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
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(real_answers.main([str(self.folder)]), 2)
        self.assertRegex(said.getvalue(), r"\Areal_answers: no .*/raw_data.json in .*\n\Z")


class Labels(InFolder):
    def read(self, key: str = "1/2/0", **changes: str) -> dict[str, Label]:
        answer = ANSWERS[0]
        entry = {"hash": answer.content_hash, "label": "wrong", "reason": "a race"} | changes
        (self.folder / "labels.json").write_text(json.dumps({key: entry}))
        return real_answers.read_labels(self.folder / "labels.json", [answer])

    def test_an_answer_has_the_label_made_for_its_text(self) -> None:
        self.assertEqual(self.read(), {"1/2/0": Label("wrong", "a race")})

    def test_what_does_not_fit_is_told(self) -> None:
        for changes, told in (
            ({"key": "1/2/1"}, "no label for 1/2/0"),
            ({"hash": "0" * 16}, "1/2/0 is not the text"),
            ({"label": "fine"}, "no label is named 'fine'"),
        ):
            with self.subTest(told), self.assertRaisesRegex(InputError, told):
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

    def test_a_selection_names_labels_or_keys(self) -> None:
        for only, expected in (
            ((), KEYS),
            (("honest",), ["1/2/0", "2/1/0"]),
            (("torch", "2/*"), ["1/10/0", "2/1/0"]),
        ):
            with self.subTest(only=only):
                chosen = real_answers.selected(ANSWERS, LABELS, only)
                self.assertEqual([answer.key for answer in chosen], expected)


class Judging(InFolder):
    def setUp(self) -> None:
        super().setUp()
        fake = self.folder / "musacoder"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        self.judge = Judge(str(fake), self.folder, ())
        self.out = self.folder / "out.jsonl"

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()

    def test_what_was_judged_is_not_judged_again(self) -> None:
        self.assertEqual(self.judge.outcomes(ANSWERS[:1], self.out), {"1/2/0": PASS})
        self.assertEqual(self.judge.outcomes(ANSWERS[:2], self.out), dict.fromkeys(KEYS[:2], PASS))
        self.judge.outcomes(ANSWERS[:2], self.out)
        self.assertEqual(self.asked(), ["- kernelbench:1/2#0", "- kernelbench:1/10#0"])

    def test_a_run_that_was_cut_short_loses_nothing_but_a_torn_line(self) -> None:
        verdict = {"candidate": "kernelbench:1/2#0", "outcome": {"kind": "wrong"}}
        part = self.folder / "out.jsonl.new.part"
        part.write_text(json.dumps({"verdict": verdict}) + '\n{"verdict": {"candi')
        outcomes = self.judge.outcomes(ANSWERS[:2], self.out)
        self.assertEqual(outcomes, {"1/2/0": {"kind": "wrong"}, "1/10/0": PASS})
        self.assertEqual(self.asked(), ["- kernelbench:1/10#0"])

    def test_each_seed_has_its_own_verdicts(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = real_answers.judge_seeds(self.judge, ANSWERS[:1], self.out, 2)
        self.assertEqual(code, 0)
        self.assertEqual(said.getvalue(), "0 of 1 honest answers change class over 2 seeds\n")
        self.assertEqual(self.asked(), ["1 kernelbench:1/2#0", "2 kernelbench:1/2#0"])

    def test_a_program_that_is_not_there_is_told(self) -> None:
        judge = Judge(str(self.folder / "none"), self.folder, ())
        with self.assertRaisesRegex(InputError, "cannot run .*none"):
            judge.outcomes(ANSWERS, self.out)


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
                self.assertEqual(real_answers.told(outcome), expected)

    def missed(self, **outcomes: str) -> list[str]:
        """With `<label>_<n>` for answers of that label and the kinds of their outcomes."""
        labels = {name: Label(name.split("_")[0], "") for name in outcomes}
        told = {name: {"kind": kind} for name, kind in outcomes.items() if kind}
        return real_answers.missed(labels, told, list(outcomes))

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

    def test_a_class_that_changes_is_listed_with_each_seed(self) -> None:
        runs: list[dict[str, Json]] = [
            {"a": PASS, "b": PASS, "c": PASS},
            {"a": PASS, "b": {"kind": "wrong"}},
        ]
        self.assertEqual(
            real_answers.changing(runs, ["a", "b", "c"]),
            ["  b: pass, wrong", "  c: pass, not judged"],
        )


if __name__ == "__main__":
    unittest.main()
