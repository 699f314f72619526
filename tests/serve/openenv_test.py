# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""The environment for OpenEnv, where that is installed: rewards, their scale, and the rubric."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/serve")]

from serve_test import Served  # noqa: E402


@unittest.skipUnless(importlib.util.find_spec("openenv"), "the package openenv is not installed")
class OpenEnv(Served):
    def setUp(self) -> None:
        from musacoder.openenv import KernelEnvironment

        self.environment = KernelEnvironment()

    def step(self, answer: str, **how: Any) -> Any:
        from musacoder.openenv import KernelAction

        self.environment.reset(turns=1, **how)
        return asyncio.run(self.environment.step_async(KernelAction(answer=answer)))

    def scores(self) -> dict[str, float | None]:
        return {name: one.last_score for name, one in self.environment.rubric.named_rubrics()}

    def test_rewards_are_the_verdicts_or_from_0_to_1(self) -> None:
        for answer, reward, scaled in (("yes", 1.0, 0.8), ("fail", -1.0, 0.0)):
            self.assertEqual(self.step(answer).reward, reward)
            self.assertEqual(self.step(answer, scaled=True).reward, scaled)

    def test_the_rubric_has_the_components_of_the_last_answer(self) -> None:
        observation = self.step("fail")
        self.assertEqual(self.environment.rubric.last_score, -1.0)
        self.assertEqual(self.scores(), observation.components)
        self.assertEqual(list(self.scores()), ["correct", "speed", "memory", "general"])

    def test_an_unscored_answer_ends_the_episode_without_a_reward_or_components(self) -> None:
        for answer in ("infra", "unsupported"):
            observation = self.step(answer, scaled=True)
            self.assertEqual((observation.reward, observation.done), (None, True))
            self.assertEqual(observation.components, {})
            self.assertEqual(set(self.scores().values()), {None})


if __name__ == "__main__":
    unittest.main()
