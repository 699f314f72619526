# SPDX-License-Identifier: Apache-2.0
"""The pool of musacoder.ray over simulated actors.

The classes of Ray's errors are all that the pool needs of it here, and have stand-ins below.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import types
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "python"))


class RayActorError(Exception):
    pass


class RayTaskError(Exception):
    pass


errors = types.ModuleType("ray.exceptions")
errors.__dict__.update(RayActorError=RayActorError, RayTaskError=RayTaskError)
stand_in = types.ModuleType("ray")
stand_in.__dict__.update(exceptions=errors)
sys.modules |= {"ray": stand_in, "ray.exceptions": errors}

from musacoder.ray import pool as pools  # noqa: E402

Reply = dict[str, Any]


def reply_of(kind: str, answer: str) -> Reply:
    verdict = {"task": answer, "outcome": {"kind": kind}}
    return {"reward": 1.0, "feedback": "", "seconds": 0.0, "verdict": verdict}


class Method:
    def __init__(self, call: Callable[..., Any]) -> None:
        self.remote = call


class Actor:
    """Replies to a question by the first word of its answer, and counts."""

    def __init__(self, problem: str = "") -> None:
        self.asked: list[str] = []
        self.open = 0
        self.open_with_bad: list[int] = []
        self.problem = problem
        self.examined = 0
        self.ask = Method(self._ask)
        self.state = Method(self._state)
        self.examine = Method(self._examine)

    async def _ask(self, question: Reply) -> Reply:
        answer = question["answer"]
        self.asked.append(answer)
        self.open += 1
        if answer.startswith("bad"):
            self.open_with_bad.append(self.open)
        await asyncio.sleep(0.3 if answer.startswith("slow") else 0.005)
        self.open -= 1
        if answer.startswith("bad"):
            raise pools.RayTaskError("the child ended")
        if answer.startswith("dies") and self.problem:
            raise pools.RayActorError("the actor died")
        kind = "infra" if self.problem or answer.startswith("infra") else "pass"
        return reply_of(kind, answer)

    async def _state(self) -> tuple[str, str]:
        return "this program", ""

    async def _examine(self) -> str:
        self.examined += 1
        return self.problem


def pool_of(*actors: Actor) -> pools.Pool:
    members = [pools.Member(f"actor {i}", one, "this program") for i, one in enumerate(actors)]
    return pools.Pool(members, [])


def judged(pool: pools.Pool, *answers: str) -> list[str]:
    return [one.verdict["task"] for one in pool.evaluate_many([("t\n", a) for a in answers])]


class PoolTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.disable()  # The pool reports the actors that it loses here.
        self.addCleanup(logging.disable, logging.NOTSET)

    def test_equal_questions_that_are_open_together_are_asked_once(self) -> None:
        actor = Actor()
        self.assertEqual(judged(pool_of(actor), "a", "b", "a"), ["a", "b", "a"])
        self.assertEqual(sorted(actor.asked), ["a", "b"])

    def test_questions_are_shared_out_and_each_has_its_own_verdict(self) -> None:
        actors = Actor(), Actor(), Actor()
        answers = [str(i) for i in range(300)]
        self.assertEqual(judged(pool_of(*actors), *answers), answers)
        self.assertGreater(min(len(actor.asked) for actor in actors), 80)

    def test_the_question_of_a_lost_actor_goes_to_another(self) -> None:
        self.assertEqual(judged(pool_of(Actor("broken"), Actor()), "dies 1"), ["dies 1"])

    def test_an_actor_that_fails_its_probe_is_set_aside(self) -> None:
        sick, well = Actor("its GPU is ill"), Actor()
        pool = pool_of(sick, well)
        answers = [f"a{i}" for i in range(20)]
        self.assertEqual(judged(pool, *answers), answers)
        self.assertEqual([row["problem"] for row in pool.status()], ["its GPU is ill", ""])
        num_asked = len(sick.asked)
        judged(pool, "later")
        self.assertEqual(len(sick.asked), num_asked)

    def test_infra_of_two_actors_that_are_well_is_the_reply(self) -> None:
        actors = Actor(), Actor()
        pool = pool_of(*actors)
        (one,) = pool.evaluate_many([("t\n", "infra")])
        self.assertEqual(one.outcome, "infra")
        self.assertEqual([row["problem"] for row in pool.status()], ["", ""])

    def test_a_question_that_ends_its_child_is_tried_alone_and_then_fails(self) -> None:
        actors = Actor(), Actor()
        pool = pool_of(*actors)
        others = [f"slow {i}" for i in range(200)]  # Both actors are full meanwhile.
        asked = [("t\n", answer) for answer in ("bad", *others)]
        with self.assertRaisesRegex(pools.Unreachable, "4 children ended over it"):
            pool.evaluate_many(asked)
        tries = actors[0].open_with_bad + actors[1].open_with_bad
        self.assertEqual(len(tries), 1 + pools.LOSSES_MAX)
        self.assertEqual(sorted(tries)[: pools.LOSSES_MAX], [1] * pools.LOSSES_MAX)
        self.assertEqual(judged(pool, "after"), ["after"])

    def test_a_deadline_is_its_callers_own(self) -> None:
        pool = pool_of(Actor())

        async def both() -> list[Reply]:
            question = {"task": "t", "answer": "slow"}
            late = pool.reply({**question, "deadline_s": 0.02})
            return list(await asyncio.gather(late, pool.reply(question)))

        late, whole = asyncio.run(both())
        self.assertEqual(late["kind"], "late")
        self.assertEqual(whole["reward"], 1.0)


if __name__ == "__main__":
    unittest.main()
