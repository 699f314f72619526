# SPDX-License-Identifier: Apache-2.0
"""The ladder's tables (examples/ladder_report.py), from runs that are written here."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "examples"))

import ladder  # noqa: E402
import ladder_report as report  # noqa: E402


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
                         "+100.0 points [+100.0, +100.0]")  # fmt: skip
        self.assertEqual(report.against([], [after], report.first_right), "-")

    def test_the_best_speed_is_of_any_model(self) -> None:
        before = self.held("a", [episode("t", n, ["pass"], nu) for n, nu in enumerate([1, 2])])
        after = self.held("b", [episode("t", n, ["pass"], 4) for n in range(2)])
        self.assertEqual(report.near_best(before, [after]),
                         "0 %, +100.0 points [+100.0, +100.0]")  # fmt: skip
        self.assertEqual(report.speed_gain(before, [after]), "2.83 times [2.83, 2.83]")
        self.assertEqual(report.faster(before, [after]), "50 %, +50.0 points [+50.0, +50.0]")

    def test_steadiness_is_of_the_second_half_and_paired_by_seed(self) -> None:
        first = [self.run_with(f"a{n}", [9, 9, 2, 4 + n], [0.5] * 4) for n in range(3)]
        other = [self.run_with(f"b{n}", [9, 9, 1, 3 + n], [0.25] * 4) for n in range(3)]
        self.assertEqual(report.steadiness(first, first, "kl"), "3, 3.5, 4")
        self.assertEqual(report.steadiness(first, other, "kl"), "2, 2.5, 3: -1 [-1, -1]")

    def test_rows_have_a_cell_for_each_title(self) -> None:
        held = self.held("a", [episode("t", 0, ["pass"])])
        home = self.run_with("b", [1], [0.5])
        row = report.Row(held, [held], [home], [held], [home])
        for name, arm in (("A", "rl"), ("U", "updates 1")):
            titles, line = report.titles_of(name).splitlines()[0], report.row_of(name, arm, row)
            self.assertEqual(titles.count("|"), line.count("|"))
            self.assertIn("| 50.0 % → 50.0 % | 1.0000 | 30 % |", line)
        no_course = report.Row(held, [held], [self.root / "none"], [held], [home])
        self.assertTrue(report.row_of("A", "rft", no_course).endswith("| - | - | - |\n"))


if __name__ == "__main__":
    unittest.main()
