# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found"
"""The pool: which actor gets a question, and what becomes of it where an actor is lost.

Rules:
1. A question goes to the actor with the fewest open ones, of those that are there.
2. A question whose actor dies or cannot be reached goes to another one.  A verdict is a function of
   the question, so a second one is the same and harmless.  One that was with a child at its end is
   asked alone from then on; where children end over it LOSSES_MAX times more, it fails.
3. An actor that was lost is asked again until it is back; Ray starts it anew.
4. An actor that replies infra is probed once with a kernel that is right, in a new child.  Where
   that fails too, it is set aside and reported, and never reset.
5. All actors of a kind must have the same program, PyTorch, policy and architecture.
6. Equal questions that are open together are asked once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import ray
from ray.exceptions import RayActorError, RayTaskError

from musacoder.judged import Judged, Json, Options, Unreachable, judged_of, question_of
from musacoder.ray.actors import Verifier

NAMESPACE = "musacoder"
OPEN_MAX = 32  # Questions with one actor; the rest wait here, so that a lost actor loses few.
PING_S = 10.0
BACK_S = 180.0  # Without any actor for so long, a question fails.
LOSSES_MAX = 3
START_S = 600.0  # The first start on a node compiles what its PyTorch needs.

log = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass
class Member:
    """An actor as the pool sees it."""

    name: str
    actor: Any
    about: str
    num_open: int = 0
    num_done: int = 0
    is_reserved: bool = False  # For the one question that is open there.
    problem: str = ""  # "": it takes questions.
    is_aside: bool = False  # It is not asked again.


@dataclass
class Kind:
    """The actors that do the same."""

    name: str
    members: list[Member]
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def best(self, besides: Member | None, is_alone: bool) -> Member | None:
        """The member to ask next; None where each has enough or is lost."""
        open_max = 1 if is_alone else OPEN_MAX
        able = [
            m for m in self.members if not m.problem and not m.is_reserved and m.num_open < open_max
        ]
        others = [m for m in able if m is not besides]
        return min(others or able, key=lambda m: m.num_open, default=None)


class Pool:
    """Actors that judge.  Safe for calls from several threads and event loops.

    Made by start() and connect().
    """

    def __init__(self, measure: Sequence[Member], prepare: Sequence[Member]) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="musacoder-ray", daemon=True).start()
        self._measure = Kind("measure", list(measure))
        self._prepare = Kind("prepare", list(prepare))
        self._running: dict[str, asyncio.Task[Json]] = {}  # Keys: questions.
        self._revivals: set[asyncio.Task[None]] = set()

    async def verdict(
        self, task: str | dict[str, str], answer: str, options: Options | None = None
    ) -> Judged:
        """Judges one answer; arguments as of musacoder.evaluate.

        Raises Refused where the question is wrong, Unreachable where no actor is left.
        """
        return judged_of(await self.reply(question_of(task, answer, options)))

    def evaluate_many(
        self,
        questions: Sequence[tuple[str | dict[str, str], str]],
        options: Options | None = None,
    ) -> list[Judged]:
        """Judges (task, answer) pairs; the results are in their order."""
        asked = [question_of(task, answer, options) for task, answer in questions]
        return [judged_of(reply) for reply in self._run(self._all(asked)).result()]

    async def reply(self, question: Json) -> Json:
        """The program's own reply to a question (docs/stream.md)."""
        return await asyncio.wrap_future(self._run(self._shared(question)))

    def status(self) -> list[dict[str, str | int]]:
        """A row for each actor: kind, name, questions open and done, and its problem or ""."""
        return [
            {
                "kind": kind.name, "name": m.name, "open": m.num_open, "done": m.num_done,
                "problem": m.problem, "about": m.about,
            }
            for kind in (self._prepare, self._measure)
            for m in kind.members
        ]  # fmt: skip

    def _run(self, work: Coroutine[Any, Any, Result]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _all(self, questions: Sequence[Json]) -> list[Json]:
        return list(await asyncio.gather(*map(self._shared, questions)))

    async def _shared(self, question: Json) -> Json:
        key = json.dumps(question, sort_keys=True)
        work = self._running.get(key)
        if work is None:
            work = self._loop.create_task(self._judge(question))
            self._running[key] = work
            work.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(work)

    async def _judge(self, question: Json) -> Json:
        if self._prepare.members:
            reply = await self._ask(self._prepare, {**question, "verb": "prepare"})
            if "prepared" not in reply:
                return reply
            question = {"verb": "measure", "prepared": reply["prepared"]} | {
                key: question[key] for key in ("options", "priority") if key in question
            }
        return await self._ask(self._measure, question)

    async def _ask(self, kind: Kind, question: Json) -> Json:
        besides: Member | None = None
        losses = 0
        while True:
            member = await self._take(kind, besides, is_alone=losses > 0)
            try:
                reply: Json = await member.actor.ask.remote(question)
            except (RayActorError, RayTaskError) as error:
                self._lose(kind, member, error)
                losses += isinstance(error, RayTaskError)  # Its child ended; the actor did not.
                if losses > LOSSES_MAX:
                    raise Unreachable(f"{losses} children ended over it: {error}") from None
                continue
            finally:
                member.num_open -= 1
                member.is_reserved = False
                async with kind.changed:
                    kind.changed.notify_all()
            if not _is_infra(reply):
                member.num_done += 1
                return reply
            await self._examine(member)
            if besides is not None or len(kind.members) == 1:
                return reply
            besides = member

    async def _take(self, kind: Kind, besides: Member | None, is_alone: bool) -> Member:
        """Raises Unreachable where no actor takes questions for BACK_S."""
        async with kind.changed:
            while (member := kind.best(besides, is_alone)) is None:
                is_lost = all(m.problem for m in kind.members)
                try:
                    await asyncio.wait_for(kind.changed.wait(), BACK_S if is_lost else None)
                except asyncio.TimeoutError:
                    problems = "; ".join(f"{m.name}: {m.problem}" for m in kind.members)
                    raise Unreachable(f"no actor of {NAMESPACE} is left: {problems}") from None
            member.num_open += 1
            member.is_reserved = is_alone
            return member

    def _lose(self, kind: Kind, member: Member, error: Exception) -> None:
        if member.problem:
            return
        member.problem = str(error).strip().splitlines()[0]
        log.warning("%s is lost: %s", member.name, member.problem)
        revival = self._loop.create_task(self._revive(kind, member))
        self._revivals.add(revival)
        revival.add_done_callback(self._revivals.discard)

    async def _revive(self, kind: Kind, member: Member) -> None:
        while True:
            try:
                about = await asyncio.wait_for(member.actor.about.remote(), PING_S)
                break
            except (RayActorError, RayTaskError, asyncio.TimeoutError):
                await asyncio.sleep(0.5)
        if about != member.about:
            member.problem, member.is_aside = f"it came back as another: {about}", True
            log.error("%s is set aside: %s", member.name, member.problem)
            return
        async with kind.changed:
            member.problem = ""
            kind.changed.notify_all()

    async def _examine(self, member: Member) -> None:
        try:
            is_well = await member.actor.is_well.remote()
        except (RayActorError, RayTaskError):
            return  # The next question shows that it is lost.
        if not is_well and not member.problem:
            member.problem, member.is_aside = "its probe fails: look at its GPU", True
            log.error("%s is set aside: %s", member.name, member.problem)


def _is_infra(reply: Json) -> bool:
    return "verdict" in reply and reply["verdict"]["outcome"]["kind"] == "infra"


def start(
    measure: int,
    prepare: int = 0,
    *,
    cpus: float = 1,
    gpus: float = 0,
    options: Sequence[str] = (),
    prepare_options: Sequence[str] = (),
    program: str | None = None,
    name: str = "musacoder",
) -> Pool:
    """Starts actors that are not there yet, detached from this process, and connects to all.

    measure, prepare: how many of each.  Without actors that prepare, the others do both.
    cpus, gpus: what Ray reserves for each; one that prepares has no GPU.  With gpus=1, Ray shows
        each actor a device of its own.
    options: those of `musacoder eval` for the actors that measure; prepare_options for the others,
        such as ["--architecture", "90"] on nodes without a GPU.
    program: the path of the program, the same on all nodes; None: $MUSACODER or PATH there.
    REQUIRES: ray.init() was called.
    """
    jobs = ["--jobs", str(max(1, round(cpus)))]
    for kind, count, words, share in (
        ("measure", measure, options, gpus),
        ("prepare", prepare, prepare_options, 0),
    ):
        for i in range(count):
            ray.remote(Verifier).options(
                name=f"{name}-{kind}-{i}", namespace=NAMESPACE, lifetime="detached",
                get_if_exists=True, num_cpus=cpus, num_gpus=share, max_restarts=-1,
                max_task_retries=0, scheduling_strategy="SPREAD",
            ).remote([*jobs, *words], program)  # fmt: skip
    return connect(name)


def connect(name: str = "musacoder") -> Pool:
    """The pool of the actors that start() made.  Raises Unreachable where they cannot judge."""
    pool = Pool(_members(f"{name}-measure-"), _members(f"{name}-prepare-"))
    if not pool._measure.members:
        raise Unreachable(f"no actors of the name {name}: start them with musacoder.ray.start")
    return pool


def stop(name: str = "musacoder") -> None:
    """Ends the actors of a pool."""
    for kind in ("measure", "prepare"):
        for found in _names(f"{name}-{kind}-"):
            ray.kill(ray.get_actor(found, namespace=NAMESPACE))


def _names(prefix: str) -> list[str]:
    rows = ray.util.list_named_actors(all_namespaces=True)
    found = [row["name"] for row in rows if row["namespace"] == NAMESPACE]
    return sorted(one for one in found if one.startswith(prefix))


def _members(prefix: str) -> list[Member]:
    """Raises Unreachable where one does not answer, or is unlike the first."""
    names = _names(prefix)
    actors = [ray.get_actor(name, namespace=NAMESPACE) for name in names]
    try:
        abouts = ray.get([actor.about.remote() for actor in actors], timeout=START_S)
    except (RayActorError, RayTaskError, ray.exceptions.GetTimeoutError) as error:
        raise Unreachable(f"an actor of {prefix}* does not start: {error}") from None
    for name, about in zip(names, abouts):
        if about != abouts[0]:
            raise Unreachable(f"{name} has {about}, but {names[0]} has {abouts[0]}")
    return [Member(*row) for row in zip(names, actors, abouts)]
