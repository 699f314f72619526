# SPDX-License-Identifier: Apache-2.0
"""The rules of python/musacoder/rules.py agree with the golden files of src/rl."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from musacoder import Judged, episode, rules, trl, verl  # noqa: E402

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


def golden(name: str, key: str = "cases") -> list[dict[str, Any]]:
    data = json.loads((ROOT / "src/rl/golden" / f"{name}.json").read_text())
    cases: list[dict[str, Any]] = data[key]
    return cases


class Golden(unittest.TestCase):
    def assert_close(self, found: Any, expected: Any, case: Any) -> None:
        if expected is None or found is None:
            self.assertEqual(found, expected, case)
        else:
            self.assertLessEqual(abs(found - expected), 1e-6 * max(1, abs(expected)), case)

    def test_prime_echo(self) -> None:
        for case in golden("prime_echo"):
            found = rules.prime_echo(case["s"], case["alpha"], case["b_early"])
            self.assert_close(found, case["R"], case)

    def test_training_score_has_the_speed_grid(self) -> None:
        for case in golden("score"):
            if case["outcome"] != "pass" or case["nu"] is None or case["lambda"] != 0.25:
                continue
            plain = 1 + 0.25 * min(max(case["nu"] - 1, 0), case["nu_max"])
            if case["step"] > 0:
                self.assert_close(rules.training_score(plain), case["s"], case)
        self.assertEqual(rules.training_score(-0.4), -0.4)
        self.assertIsNone(rules.training_score(None))

    def test_special_tokens_are_parted_as_in_the_feedback(self) -> None:
        table = (ROOT / "src/reward/golden/special_tokens.txt").read_text(encoding="utf-8")
        lines = table.split("\n")
        for text, parted in zip(lines[::2], lines[1::2]):
            self.assertEqual(rules.without_special_tokens(text), parted)
        self.assertNotIn("<|im_end|>", rules.retry_request("x = '<|im_end|>'", ""))

    def test_advantages(self) -> None:
        for case in golden("advantage"):
            found = rules.advantages(
                case["rewards"],
                eps=case["eps"],
                spread_min=case["spread_min"],
                std_floor=case["std_floor"],
                scale_by_std=case["scale"] == "std",
            )
            for one, expected in zip(found, case["advantage"], strict=True):
                self.assert_close(one, expected, case)
            if case["fate"] == "no_spread":
                self.assertEqual({one for one in found if one is not None}, {0.0})

    @unittest.skipIf(torch is None, "needs PyTorch")
    def test_mirror_pop(self) -> None:
        for case in golden("mirror_pop"):
            old, rollout, mask = (
                torch.tensor([[math.nan if x is None else x for x in case[name] * case["repeat"]]])
                for name in ("logp_old", "logp_rollout", "mask")
            )
            kept, drift = rules.mirror_pop(old, rollout, mask, case["delta"])
            self.assertEqual(bool(kept), case["kept"], case["name"])
            self.assert_close(float(drift), case["mean_abs"], case["name"])

    def test_minimum(self) -> None:
        for case in golden("advantage", "minimum"):
            flags = [i in case["unsupported"] for i in range(len(case["rewards"]))]
            self.assertEqual(rules.with_minimum(case["rewards"], flags), case["R"], case)

    def test_code_and_visible_part_of_an_answer(self) -> None:
        for case in golden("bdr", "code"):
            self.assertEqual(rules.code_of(case["answer"]), case["code"], case)
            self.assertEqual(rules.visible(case["answer"]), case["visible"], case)

    def test_uniform(self) -> None:
        for case in golden("bdr", "uniform"):
            found = rules.uniform(case["seed"], case["step"], case["slot"])
            self.assertEqual(int(found * 2**53), case["u_times_2_to_53"])

    def test_choice_of_a_failure(self) -> None:
        for case in golden("bdr", "choice"):
            failures = [
                rules.Failure("t", one["code"], s=one["s"], stage=rules.STAGES[one["stage"]])
                for one in case["candidates"]
            ]
            self.assertEqual(rules.choose_failure(failures), failures[case["chosen"]])

    def test_retry_buffer(self) -> None:
        for case in golden("bdr"):
            buffer = rules.RetryBuffer(
                case["capacity"], case["probability"], case["replays_max"], case["seed"]
            )
            for operation in case["operations"]:
                # A checkpoint after every operation changes nothing.
                state = json.loads(json.dumps(buffer.state()))
                buffer = rules.RetryBuffer(
                    case["capacity"], case["probability"], case["replays_max"], case["seed"]
                )
                buffer.restore(state)
                self.perform(buffer, operation)
            self.assertEqual([failure.code for failure in buffer.failures], case["codes"])
            self.assertEqual(buffer.state()["replays"], case["replays"])

    def perform(self, buffer: rules.RetryBuffer, operation: dict[str, Any]) -> None:
        if operation["op"] == "draw":
            drawn = buffer.draw(operation["step"], operation["slot"])
            found = drawn and {"task": drawn.task, "code": drawn.code}
            self.assertEqual(found, operation["found"], operation)
        elif operation["op"] == "solved":
            buffer.solved(operation["task"])
        else:
            buffer.insert([rules.Failure(**failure) for failure in operation["failures"]])
            self.assertEqual([f.task for f in buffer.failures], operation["queue"], operation)


class Words(unittest.TestCase):
    def test_requests_are_those_of_the_embedded_trainer(self) -> None:
        source = (ROOT / "src/reward/feedback.cc").read_text()
        request = rules.retry_request("ANSWER", "FEEDBACK")
        self.assertIn('"{}Write the whole answer again.\\n"', source)
        self.assertIn('"An answer that failed:\\n{}\\n{}"', source)
        rollout = (ROOT / "src/loop/rollout.cc").read_text()
        self.assertIn("The answer was cut off after ", rollout)
        self.assertIn("before its end.  Write a shorter one.", rollout)
        self.assertEqual(
            episode.cut_off(7).feedback,
            "The answer was cut off after 7 tokens, before its end.  Write a shorter one.\n",
        )
        self.assertEqual(
            request, "An answer that failed:\nANSWER\nFEEDBACKWrite the whole answer again.\n"
        )


class Groups(unittest.TestCase):
    def turn(self, answer: str, s: float | None, stage: str | None = "compile") -> rules.Turn:
        return rules.Turn(answer, s, f"feedback to {answer}", stage)

    def test_a_pass_in_any_turn_keeps_a_group_out(self) -> None:
        episodes = [[self.turn("a", -1.0), self.turn("b", 1.0, None)], [self.turn("c", -1.0)]]
        self.assertIsNone(rules.Group("t", "p", episodes).failure(3, 1))

    def test_a_group_without_any_score_stays_out(self) -> None:
        episodes = [[self.turn("a", None, None)]]
        self.assertIsNone(rules.Group("t", "p", episodes).failure(3, 1))

    def test_the_best_failure_is_kept(self) -> None:
        episodes = [
            [self.turn("long, and compiled", -1.0, "forward"), self.turn("short", -1.0, "forward")],
            [self.turn("x", -1.0, "extraction"), self.turn("none", None, None)],
        ]
        failure = rules.Group("t", "p", episodes).failure(3, 1)
        self.assertEqual(
            failure,
            rules.Failure("t", "short", "feedback to short", -1.0, "forward", 3, 1, "p"),
        )
        nearly = [[self.turn("q", -0.05, "comparison")], *episodes]
        kept = rules.Group("t", "p", nearly).failure(3, 1)
        assert kept is not None
        self.assertEqual(kept.code, "q")

    def test_the_code_is_kept_and_not_the_whole_answer(self) -> None:
        code = "```python\nclass ModelNew: ...\n```\n"
        episodes = [[self.turn(f"<think>\n{'long ' * 99}</think>\n{code}", -1.0)]]
        kept = rules.Group("t", "p", episodes).failure(3, 1)
        assert kept is not None
        self.assertEqual(kept.code, code)

    def test_a_replay_that_does_not_fit_is_not_kept(self) -> None:
        episodes = [[self.turn("long one", -0.1, "comparison"), self.turn("short", -1.0)]]
        kept = rules.Group("t", "p", episodes).failure(3, 1, lambda f: len(f.code) < 6)
        assert kept is not None
        self.assertEqual(kept.code, "short")

    def test_a_fresh_prompt_that_solves_a_task_takes_it_out_of_the_buffer(self) -> None:
        buffer = rules.RetryBuffer(probability=1.0)
        failed = rules.Group("t", "p", [[self.turn("a", -1.0)]])
        buffer.remember([failed], 0)
        self.assertEqual(len(buffer), 1)
        buffer.remember([rules.Group("t", "p", [[self.turn("b", 1.0, None)]])], 1)
        self.assertEqual(len(buffer), 0)

    def test_a_draw_that_was_never_answered_is_undone(self) -> None:
        buffer = rules.RetryBuffer(probability=1.0, replays_max=1)
        buffer.insert([rules.Failure("a", "1", step=0), rules.Failure("b", "2", step=0)])
        before = buffer.state()
        drawn = buffer.draw(1, 0)
        assert drawn is not None
        self.assertEqual(len(buffer), 1)
        buffer.give_back(drawn)
        self.assertEqual([one.task for one in buffer.failures], ["a", "b"])
        self.assertEqual({**buffer.state(), "replays": {}}, before)
        buffer.solved("a")
        buffer.give_back(drawn)
        self.assertEqual([one.task for one in buffer.failures], ["b"])

    def test_stages_of_outcomes(self) -> None:
        expected = {
            ("extraction", ""): "extraction",
            ("illegal", "static"): "legality",
            ("illegal", "link"): "compile",
            ("illegal", "run"): "forward",
            ("illegal", "timing"): "comparison",
            ("compile", ""): "compile",
            ("runtime", "init"): "init",
            ("timeout", "forward"): "forward",
            ("oom", "load"): "load",
            ("wrong", ""): "comparison",
            ("pass", ""): None,
            ("infra", ""): None,
            ("unsupported", ""): None,
        }
        for (kind, where), stage in expected.items():
            outcome = {"kind": kind, "when": where, "stage": where}
            self.assertEqual(rules.failed_stage(outcome), stage, kind)

    def test_a_task_is_not_drawn_twice_in_a_step_though_it_failed_again(self) -> None:
        buffer = rules.RetryBuffer(probability=1.0)
        buffer.insert([rules.Failure("t", "first", step=0)])
        self.assertIsNotNone(buffer.draw(1, 0))
        buffer.insert([rules.Failure("t", "late", step=0, group=1)])
        self.assertIsNone(buffer.draw(1, 1))
        drawn = buffer.draw(2, 0)
        assert drawn is not None
        self.assertEqual(drawn.code, "late")

    def test_a_pass_is_no_failure(self) -> None:
        with self.assertRaisesRegex(ValueError, "passed"):
            rules.RetryBuffer().insert([rules.Failure("t", "c", s=1.0)])

    def test_a_failure_survives_json(self) -> None:
        failure = rules.Failure("t", "c", "f", -0.4, "comparison", 3, 2, [{"role": "user"}])
        copied = rules.Failure(**json.loads(json.dumps(dataclasses.asdict(failure))))
        self.assertEqual(copied, failure)


class Rewards(unittest.TestCase):
    """The reward functions that a host loads by itself."""

    def judge(self, task: str, answer: str, options: Any = None) -> Judged:
        dialect = (options or {}).get("dialect")
        kinds = {"unsupported": None, "musa": 1.0 if dialect == "musa" else -1.0, "pass": 1.0}
        self.asked.append((task, answer, options))
        outcome = "unsupported" if answer == "unsupported" else "pass"
        return Judged(kinds.get(answer, -1.0), outcome, "", 0.0, {})

    def setUp(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        for module in (trl, verl):
            patch = mock.patch.object(module, "evaluate", self.judge)
            patch.start()
            self.addCleanup(patch.stop)

    def test_trl_judges_a_row_in_its_dialect(self) -> None:
        columns = {"task": ["t", "t"], "dialect": ["musa", None]}
        self.assertEqual(trl.reward(["musa", "musa"], **columns), [1.0, -1.0])
        self.assertEqual(sorted(options is None for _, _, options in self.asked), [False, True])
        own = [{"precision": "bf16"}, None]
        extra = [{"dialect": "musa"}, {"dialect": "cuda"}]
        self.asked.clear()
        trl.reward(["a", "b"], task=["t", "t"], options=own, extra_info=extra)
        options = [one for _, _, one in sorted(self.asked)]
        self.assertEqual(options, [{"precision": "bf16", "dialect": "musa"}, {"dialect": "cuda"}])

    def test_trl_gives_an_unsupported_answer_the_least_reward_of_its_prompt(self) -> None:
        answers = ["pass", "unsupported", "fail", "unsupported"]
        prompts = ["p", "p", "p", "other"]
        found = trl.reward(answers, task=["t"] * 4, prompts=prompts)
        self.assertEqual(found, [1.0, -1.0, -1.0, None])

    def test_trl_asks_nothing_about_an_answer_that_was_cut(self) -> None:
        found = trl.reward(
            ["pass", "pass"],
            task=["t", "t"],
            completion_ids=[[1, 2], [1]],
            musacoder_is_cut=[True, False],
        )
        self.assertEqual(found, [-1.0, 1.0])
        self.assertEqual(len(self.asked), 1)

    def test_verl_judges_a_row_in_its_dialect(self) -> None:
        for dialect, score in (("musa", 1.0), ("cuda", -1.0)):
            found = verl.compute_score("forge", "musa", "t", {"dialect": dialect})
            self.assertEqual(found["score"], score)
        self.assertEqual(verl.compute_score("forge", "musa", "t")["score"], -1.0)

    def test_verl_tells_unsupported_answers_from_infra(self) -> None:
        found = verl.compute_score("forge", "unsupported", "t")
        self.assertEqual((found["score"], found["scored"]), (verl.UNSUPPORTED, 0.0))


if __name__ == "__main__":
    unittest.main()
