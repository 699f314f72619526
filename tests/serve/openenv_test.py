# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped"
"""The environment for OpenEnv, where that is installed: rewards, their scale, rubric, client."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import socket
import sys
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/serve")]

from musacoder.components import NAMES  # noqa: E402
from serve_test import Served  # noqa: E402


@contextlib.contextmanager
def serve_environment() -> Iterator[str]:
    """OpenEnv's own server of the environment, in a thread; its address."""
    import uvicorn
    from musacoder.openenv import app

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


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
        self.assertEqual(list(self.scores()), list(NAMES))

    def test_an_unscored_answer_ends_the_episode_without_a_reward_or_components(self) -> None:
        for answer in ("infra", "unsupported"):
            observation = self.step(answer, scaled=True)
            self.assertEqual((observation.reward, observation.done), (None, True))
            self.assertEqual(observation.components, {})
            self.assertEqual(set(self.scores().values()), {None})

    def test_a_client_gets_no_reward_for_an_unscored_answer_and_not_0(self) -> None:
        from musacoder.openenv import KernelAction, KernelEnv

        with serve_environment() as url, KernelEnv(base_url=url).sync() as environment:
            for answer, reward in (("infra", None), ("unsupported", None), ("fail", -1.0)):
                environment.reset(turns=1)
                result = environment.step(KernelAction(answer=answer))
                self.assertEqual((result.reward, result.done), (reward, True), answer)
                self.assertEqual(result.observation.reward, reward)
                outcome = "wrong" if answer == "fail" else answer
                self.assertEqual(result.observation.outcome, outcome)


if __name__ == "__main__":
    unittest.main()
