# SPDX-License-Identifier: Apache-2.0
"""The ladder's tables (lab/ladder/ladder_report.py), from runs that are written here."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("lab/ladder", "examples", "python")]

import ladder  # noqa: E402
import ladder_blocks as blocks  # noqa: E402
import ladder_report as report  # noqa: E402
import learn  # noqa: E402
import stand_in_judge as judge  # noqa: E402
from musacoder import rules  # noqa: E402


def episode(task: str, sample: int, outcomes: list[str], nu: float | None = None) -> str:
    turns = [{"outcome": one, "s": None if one == "infra" else 0.0, "nu": nu} for one in outcomes]
    return json.dumps({"task": task, "sample": sample, "turns": turns}) + "\n"


class LadderReportTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def held(self, name: str, lines: list[str]) -> report.Held:
        (self.root / name).mkdir()
        (self.root / name / "episodes.jsonl").write_text("".join(lines))
        return report.held_of(self.root / name)

    def run_with(self, name: str, kl: list[float], accuracy: list[float]) -> Path:
        (self.root / name).mkdir()
        rows = [{"kl": one, "accuracy_first": other, "rejected": 2, "verdict_wait_s": 3.0,
                 "entropy": 0.1, "groups_no_spread": 1,
                 "elapsed_s": 10.0 * (step + 1)}
                for step, (one, other) in enumerate(zip(kl, accuracy, strict=True))]  # fmt: skip
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.root / name / "metrics.jsonl").write_text(text)
        return self.root / name

    def test_an_answer_without_a_score_says_nothing(self) -> None:
        held = self.held("a", [episode("t", 0, ["infra"]), episode("t", 1, ["pass"])])
        self.assertEqual(report.first_right(held), {"t": 1.0})

    def test_trained_on_are_tasks_that_were_answered_both_ways(self) -> None:
        tries = {
            "always": ["pass", "pass"],
            "never": ["wrong", "compile"],
            "both": ["wrong", "pass"],
        }
        lines = [episode(task, n, [one]) for task, some in tries.items()
                 for n, one in enumerate(some)]  # fmt: skip
        (self.root / "episodes.jsonl").write_text("".join(lines))
        self.assertEqual(ladder.answered_both_ways(self.root / "episodes.jsonl"), {"both"})

    def test_a_later_turn_counts_for_the_episode_alone(self) -> None:
        held = self.held("a", [episode("t", 0, ["wrong", "pass"]), episode("t", 1, ["wrong"])])
        self.assertEqual(report.first_right(held), {"t": 0.0})
        self.assertEqual(report.ever_right(held), {"t": 0.5})
        self.assertEqual(report.pass_at(held), (2, 0.0))

    def test_gains_are_paired_by_task(self) -> None:
        tasks = [f"t{n}" for n in range(20)]
        before = self.held("a", [episode(t, 0, ["wrong"]) for t in tasks])
        after = self.held("b", [episode(t, 0, ["pass"]) for t in tasks])
        self.assertEqual(report.gain(before, [after], report.first_right),
                         "+100.0 points [+100.0, +100.0] (each: +100.0)")  # fmt: skip
        self.assertEqual(report.against([before], [after], report.first_right),
                         "+100.0 points [+100.0, +100.0] (each: +100.0)")  # fmt: skip
        self.assertEqual(report.against([], [after], report.first_right), "-")

    def test_an_interval_knows_of_seeds_that_differ(self) -> None:
        below = {f"t{n}": 0.0 for n in range(20)}
        value, low, high, each = learn.paired(below, [dict.fromkeys(below, one) for one in (0, 1)])
        self.assertEqual((value, low, high, each), (0.5, 0.0, 1.0, [0.0, 1.0]))

    def test_feedback_is_held_against_a_fresh_draw_of_the_same_task(self) -> None:
        held = self.held(
            "a",
            [
                episode("t", 0, ["wrong", "pass"]),
                episode("t", 1, ["pass"]),
                episode("t", 2, ["wrong", "wrong"]),
                episode("u", 0, ["pass"]),
            ],
        )
        self.assertEqual(report.feedback_less_fresh(held), {"t": (1 - 0.5 + 0 - 0.5) / 2})
        self.assertEqual(report.turns_taken(held), (2 + 1 + 3 + 1) / 4)

    def test_the_best_speed_is_of_any_model(self) -> None:
        before = self.held("a", [episode("t", n, ["pass"], nu) for n, nu in enumerate([1, 2])])
        after = self.held("b", [episode("t", n, ["pass"], 4) for n in range(2)])
        self.assertEqual(report.near_best(before, [after]),
                         "0 %, +100.0 points [+100.0, +100.0]")  # fmt: skip
        self.assertEqual(report.speed_gain([before], [after]), "2.83 times [2.83, 2.83]")
        self.assertEqual(report.faster(before), {"t": 0.5})
        self.assertEqual(report.spread_of_speed(before), "100 % of 1 tasks")
        self.assertEqual(report.spread_of_speed(after), "0 % of 1 tasks")

    def test_what_the_rule_accepts_is_what_feedback_does_not_refuse(self) -> None:
        held = self.held("a", [episode("t", 0, ["pass"]), episode("t", 1, ["extraction"]),
                               episode("t", 2, ["runtime", "wrong"])])  # fmt: skip
        for number, turn in enumerate(held["t"][2]["turns"]):
            feedback = judge.feedback_on_blocks("", "")
            turn["feedback"] = "The result is wrong." if number else feedback
        self.assertEqual(report.fitting([held]), "1 of 2")

    def test_steadiness_is_of_the_second_half_and_paired_by_seed(self) -> None:
        first = [self.run_with(f"a{n}", [9, 9, 2, 4 + n], [0.5] * 4) for n in range(3)]
        other = [self.run_with(f"b{n}", [9, 9, 1, 3 + n], [0.25] * 4) for n in range(3)]
        self.assertEqual(report.steadiness(first, first, "kl"), "3, 3.5, 4")
        self.assertEqual(report.steadiness(first, other, "kl"), "2, 2.5, 3: -1 [-1, -1]")

    def test_rows_have_a_cell_for_each_title(self) -> None:
        held = self.held("a", [episode("t", 0, ["pass"], 2)])
        home = self.run_with("b", [1], [0.5])
        row = report.Row(held, [held], [home], [held], [home])
        for name, arm in (("A", "rl"), ("B", "speed"), ("R", "rl"), ("U", "updates 1")):
            titles, line = report.titles_of(name).splitlines()[0], report.row_of(name, arm, row)
            self.assertEqual(titles.count("|"), line.count("|"))
            self.assertIn("| 50.0 % → 50.0 % | 1.0000 | 0.100 | 1.0 | 30 % |", line)
        no_course = report.Row(held, [held], [self.root / "none"], [held], [home])
        self.assertTrue(report.row_of("A", "rft", no_course).endswith("| - | - | - |\n"))


class LadderBlocksTest(unittest.TestCase):
    ANSWER = "k<<<(n + 63) / 64, 64>>>(x, n);"

    def test_shown_repairs_have_the_words_of_the_loop_and_some_follow(self) -> None:
        codes = {f"t{n}": f"code {n}" for n in range(200)}
        rows = [{"kind": "generation", "task": task, "provenance": {"template": "thread_64"},
                 "messages": [{"content": "Write it.\n"}, {"content": self.ANSWER}]}
                for task in codes]  # fmt: skip
        rows.append({**rows[0], "task": "t1", "provenance": {"template": "row_warp"}})
        made = list(map(json.loads, blocks.shown_rows(rows, codes, seed=1)))
        repairs = [row for row in made if len(row["messages"]) == 4]
        self.assertEqual((len(made), len(repairs)), (5 * 200, 200))
        followed = 0
        for row in repairs:
            _, failed, feedback, answer = (turn["content"] for turn in row["messages"])
            code = codes[row["task"]]
            self.assertFalse(judge.fits(code, failed))
            self.assertEqual(feedback, rules.repair_request(judge.feedback_on_blocks(code, failed)))
            followed += judge.fits(code, answer)
        self.assertAlmostEqual(followed / 200, 0.4 + 0.6 / 8, delta=0.12)

    def test_a_stand_in_asks_the_next_verifier_about_what_fits(self) -> None:
        code = "code"
        answers = {"fits": blocks.with_block(self.ANSWER, judge.block_of(code)), "empty": "",
                   "other": blocks.with_block(self.ANSWER, 1)}  # fmt: skip
        lines = "".join(json.dumps({"id": name, "task": {"id": "t", "code": code}, "answer": one})
                        + "\n" for name, one in answers.items())  # fmt: skip
        script = Path(judge.__file__)
        then = ["--then", sys.executable, str(script), "--pass-rate", "0"]
        kinds = {}
        for more in ([], then):
            command = [sys.executable, str(script), "--hidden-blocks", *more]
            done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
            replies = {row["id"]: row for row in map(json.loads, done.stdout.splitlines())}
            kinds[bool(more)] = {name: replies[name]["verdict"]["outcome"]["kind"]
                                for name in answers}  # fmt: skip
        feedback = f"runs blocks of {judge.block_of(code)} threads"
        self.assertIn(feedback, replies["other"]["feedback"])
        self.assertEqual(kinds[False], {"fits": "pass", "empty": "wrong", "other": "wrong"})
        self.assertEqual(kinds[True], dict.fromkeys(answers, "wrong"))


if __name__ == "__main__":
    unittest.main()
