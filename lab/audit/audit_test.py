# SPDX-License-Identifier: Apache-2.0
"""Tests of the answers that audit.py reads and judges, and of the faults that it names.

usage: python3 -m unittest discover -s lab/audit -p '*_test.py'
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import unittest
from pathlib import Path

import audit
from audit import Answer, Json

RIGHT = {"correctness": True, "sample_id": 0}
WRONG = {"correctness": False, "sample_id": 0}
LINE = {"level": 1, "problem_id": 3, "generated_kernel_path": "runs/codex/three.py"}
FILES = {
    "KernelBench/level1/1_Sum.py": "task 1",
    "KernelBench/level1/3_Mean.py": "task 3",
    "runs/gemini_a/eval_results.json": json.dumps({"1": [RIGHT], "3": WRONG}),
    "runs/gemini_a/level_1_problem_1_sample_0_kernel.py": "A",
    "runs/gemini_a/level_1_problem_3_sample_0_kernel.py": "B",
    "runs/gemini_a/level_1_problem_4_sample_0_kernel.py": "no record",
    "runs/opus4_level2_x/detailed_results.json": json.dumps(
        {"results": [{"problem_id": 5, "eval_result": RIGHT}, {"problem_id": 6}]}
    ),
    "runs/opus4_level2_x/problem_5_kernel.py": "C",
    "runs/codex/results.jsonl": json.dumps({**LINE, "eval_result": RIGHT}),
    "runs/codex/three.py": "D",
}


def answer(code: str, task: str = "kernelbench:1/1", correct: bool = True) -> Answer:
    return Answer("owner/name", "c0ffee", f"runs/{code}.py", "model", task, correct, code)


def verdict(kind: str, **members: object) -> Json:
    return {"outcome": {"kind": kind, **members}}


def trial(
    passed: bool,
    shape: str = "native",
    path: str = "output",
    kinds: str = "",
    error: float = 11,
) -> Json:
    check = {"path": path, "problem": "value", "detail": "", "num_wrong": 1, "num_elements": 2}
    check |= {"error_max": error, "error_tolerance": 0.1, "diagnosis": ""}
    no_place = {"source": "", "line": 0}
    findings = [
        {"kind": kind, "kernel": "sum(float*)", "other": no_place}
        | {"location": {"source": "cuda_sources[0]", "line": 7}}
        for kind in kinds.split()
    ]
    return {
        **{"passed": passed, "shape": shape, "distribution": "signed", "findings": findings},
        "checks": [] if passed else [check],
    }


def ruled(rule: str) -> Json:
    return verdict("illegal", findings=[{"rule": rule, "location": {"line": 1}}])


class ReadsRecords(unittest.TestCase):
    def test_of_each_form_of_run(self) -> None:
        found = {one.code: one for one in audit.answers_of("owner/name", "c0ffee", FILES)}
        self.assertEqual(set(found), {"A", "B", "C", "D"})
        tasks = {code: one.task.removeprefix("kernelbench:") for code, one in found.items()}
        self.assertEqual(tasks, {"A": "1/1", "B": "1/3", "C": "2/5", "D": "1/3"})
        self.assertEqual([found[code].correct for code in "ABCD"], [True, False, True, True])
        self.assertEqual(found["C"].model, "claude-opus-4.1")

    def test_of_the_leaderboard_whose_problems_count_from_0(self) -> None:
        entry = {"level": "2", "problem_id": "0", "code": "E", "model": "meta/llama", "file": "f"}
        files = {audit.RAW: json.dumps([entry])}
        (found,) = audit.answers_of("owner/name", "c0ffee", files)
        self.assertEqual((found.task, found.model), ("kernelbench:2/1", "llama"))

    def test_of_a_text_with_both_records_once(self) -> None:
        records = [answer("x", correct=False), answer("x"), answer("y")]
        best, both = audit.merged(records)
        self.assertEqual([one.correct for one in best], [True, True])
        self.assertEqual(both, [answer("x").key])


class NamesTheFault(unittest.TestCase):
    def test_by_the_verdicts(self) -> None:
        wrong = verdict("wrong", trials=[trial(False)])
        close = verdict("wrong", trials=[trial(False, error=9)])
        passes = verdict("pass", trials=[trial(True)])
        race = verdict("wrong", trials=[trial(False, kinds="shared_race")])
        memory = verdict("runtime", findings=trial(False, kinds="out_of_bounds_read")["findings"])
        table: list[tuple[dict[str, Json], str]] = [
            ({}, "not judged"),
            ({"musacoder": passes}, audit.PASS),
            ({"musacoder": verdict("pass", trials=[trial(False, "small")])}, audit.SIZES),
            ({"musacoder": verdict("pass", trials=[trial(False, "native")])}, audit.SPECIAL),
            ({"musacoder": race}, audit.RACE),
            ({"musacoder": memory}, audit.MEMORY),
            ({"musacoder": wrong, "native": passes}, audit.OTHER_VALUES),
            ({"musacoder": close, "native": passes}, audit.PRECISION),
            ({"musacoder": wrong, "native": wrong}, audit.OWN_VALUES),
            ({"musacoder": ruled("run.aten"), "kernelbench": passes}, audit.TORCH),
            ({"musacoder": ruled("run.aten"), "kernelbench": wrong}, audit.OWN_VALUES),
            ({"musacoder": ruled("run.aten")}, "not judged"),
            (
                {"musacoder": ruled("run.aten"), "kernelbench": ruled("run.own_launch")},
                audit.NO_KERNEL,
            ),
            ({"musacoder": verdict("compile", diagnostics=[])}, audit.COMPILE),
            ({"musacoder": verdict("timeout", findings=[])}, audit.LIMIT),
        ]
        state = verdict("wrong", trials=[trial(False, path="buffer running_mean")])
        table.append(({"musacoder": state}, audit.STATE))
        for verdicts, fault in table:
            self.assertEqual(audit.fault_of(verdicts), fault, verdicts)

    def test_and_its_place_without_the_text(self) -> None:
        race = verdict("wrong", trials=[trial(False, kinds="shared_race")])
        self.assertEqual(audit.evidence(race), "shared_race in sum at cuda_sources[0]:7")
        overwrites = {**trial(False), "checks": [], "inputs_mutated": ["input[0]"]}
        found = audit.evidence(verdict("wrong", trials=[overwrites]))
        self.assertEqual(found, "signed: input[0] is overwritten")

    def test_counts_what_the_program_got_wrong(self) -> None:
        answers = [answer(code) for code in "abcd"]
        keys = [one.key for one in answers]
        readings = {keys[0]: {"mended": "cublas"}, keys[1]: {"fault": audit.OURS}, keys[2]: {}}
        lines = audit.by_error(answers, readings).splitlines()
        rows = [line.split(" | ")[:2] for line in lines[2:]]
        self.assertEqual(rows, [["| " + audit.OURS, "1"], ["| cublas", "1"], ["| all", "2"]])


class Judges(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        answers = [answer(code) for code in "abc"]
        lines = [vars(one) for one in answers]
        audit.write_lines(self.folder / "answers.jsonl", lines)
        self.program = self.folder / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o700)

    def judge(self, count: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            audit.judge(self.folder, audit.drawn(self.folder, count), [str(self.program)])

    def test_each_answer_once_and_what_failed_by_more_protocols(self) -> None:
        self.judge(1)
        self.judge(3)
        self.judge(3)
        lines = audit.read_lines(self.folder / "verdicts.jsonl")
        asked = sorted((line["protocol"], line["key"]) for line in lines)
        keys = sorted(answer(code).key for code in "abc")
        names = ("kernelbench", "musacoder", "native", "verified")
        self.assertEqual(asked, [(name, key) for name in names for key in keys])

    def test_a_longer_draw_begins_with_the_shorter(self) -> None:
        self.assertEqual(audit.drawn(self.folder, 2), audit.drawn(self.folder, None)[:2])


class Speeds(unittest.TestCase):
    def test_only_passing_answers_with_a_time_count(self) -> None:
        speeds = [result("pass", 3.0), result("pass", 0.25), result("pass", None)]
        self.assertEqual(audit.speeds_of([*speeds, result("wrong", 9.0)]), [0.25, 3.0])

    def test_each_speed_is_in_one_row(self) -> None:
        counts = re.findall(r"\| (\d+) \|", audit.speed_table([0.05, 0.1, 1.0, 1.5, 40.0]))
        self.assertEqual(counts, ["1", "1", "0", "2", "1"])


def result(kind: str, speed: float | None) -> Json:
    performance = None if speed is None else {"speedup_eager": {"median": speed}}
    return {"verdict": {"outcome": {"kind": kind, "performance": performance}}}


PROGRAM = """#!/usr/bin/env python3
import json, sys
words = sys.argv[1:]
policy = words[words.index("--policy") + 1]
outcome = {"kind": "illegal", "when": "run", "findings": []}
if policy == "kernelbench":
    outcome = {"kind": "wrong", "trials": []}
for line in open(words[1]):
    asked = json.loads(line)
    verdict = {"candidate": f"{asked['task']}#{asked['sample']}", "outcome": outcome}
    print(json.dumps({"verdict": verdict}))
"""

if __name__ == "__main__":
    unittest.main()
