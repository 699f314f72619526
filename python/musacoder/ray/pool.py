# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found"
"""The pool: distributes questions to actors, and repeats them if an actor is lost.

Rules:
1. A question goes to the available actor with the fewest open questions.
2. A question whose actor dies or cannot be reached goes to another one.  A verdict is a function of
   the question, so a second verdict is the same and harmless.  A question whose child ended is
   afterwards sent alone; if children end on it LOSSES_MAX times more, it fails.
3. A lost actor is called again until it is back; Ray restarts it.
4. An actor that replies infra is probed with a right kernel in a new child.  If that fails, too,
   the actor is set aside and reported, and never reset; it stores this state itself, for all pools.
5. All actors of a kind must have the same program, PyTorch, policy and architecture.
6. Equal questions that are open at the same time are sent once, with the priority of the first.
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

from musacoder.judged import (
    Judged,
    Json,
    Options,
    Refused,
    Unreachable,
    judged_of,
    question_of,
)
from musacoder.ray.actors import Verifier, is_infra

NAMESPACE = "musacoder"
OPEN_MAX = 32  # Questions with one actor; the rest wait here, so that a lost actor loses few.
PING_S = 10.0
BACK_S = 180.0  # A question fails after this time without any actor.
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
    is_reserved: bool = False  # Reserved for its one open question.
    problem: str = ""  # "" if it accepts questions.


@dataclass
class Kind:
    """The actors of one kind."""

    name: str
    members: list[Member]
    # Two conditions share one lock: a free place wakes only one waiting question, since waking all
    # would cost each question time in proportion to the others.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.has_place = asyncio.Condition(self.lock)
        self.is_drained = asyncio.Condition(self.lock)

    def best(self, besides: Member | None) -> Member | None:
        """The member for the next question; None if all are full, reserved or lost."""
        able = [
            m for m in self.members if not m.problem and not m.is_reserved and m.num_open < OPEN_MAX
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

        Raises Refused if the question is invalid, Unreachable if no actor is left.
        """
        return judged_of(await self.reply(question_of(task, answer, options)))

    def evaluate_many(
        self,
        questions: Sequence[tuple[str | dict[str, str], str]],
        options: Options | None = None,
    ) -> list[Judged]:
        """Judges (task, answer) pairs; the results are in their order.

        An invalid question has the outcome "refused", and no reward.  Raises Unreachable if no
        actor is left.
        """
        asked = [question_of(task, answer, options) for task, answer in questions]
        return [_judged_or_refused(reply) for reply in self._run(self._all(asked)).result()]

    async def reply(self, question: Json) -> Json:
        """The program's own reply to a question of the verb evaluate (docs/serve.md).

        Its "deadline_s" applies to this caller only, even if others sent an equal question.
        """
        question = dict(question)
        limit = question.pop("deadline_s", None)
        work = asyncio.wrap_future(self._run(self._shared(question)))
        try:
            return await asyncio.wait_for(work, limit)
        except asyncio.TimeoutError:
            return {"error": "its deadline has passed", "kind": "late"}

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
        key = json.dumps({**question, "priority": 0}, sort_keys=True)
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
            losses_before = losses
            member = await self._take(kind, besides, is_alone=losses > 0)
            try:
                reply: Json = await member.actor.ask.remote(question)
            except (RayActorError, RayTaskError) as error:
                self._lose(kind, member, error)
                losses += isinstance(error, RayTaskError)  # The child ended; the actor did not.
                if losses > LOSSES_MAX:
                    raise Unreachable(f"{losses} children ended over it: {error}") from None
                continue
            finally:
                member.num_open -= 1
                if losses_before:  # The question was alone there.
                    member.is_reserved = False
                async with kind.lock:
                    # After a loss, all waiting questions check whether an actor is left.
                    kind.has_place.notify(len(self._running) if member.problem else 1)
                    kind.is_drained.notify_all()
            if not is_infra(reply):
                member.num_done += 1
                return reply
            await self._examine(member)
            if besides is not None or len(kind.members) == 1:
                return reply
            besides = member

    async def _take(self, kind: Kind, besides: Member | None, is_alone: bool) -> Member:
        """Raises Unreachable where no actor takes questions for BACK_S."""
        async with kind.lock:
            while True:
                member = kind.best(besides)
                if member is not None and not is_alone:
                    member.num_open += 1
                    return member
                if member is not None and await self._empty(kind, member):
                    return member
                if member is None:
                    await self._wait(kind)

    async def _empty(self, kind: Kind, member: Member) -> bool:
        """Reserves a member and waits for its other questions; False if it is lost during the
        wait.
        """
        member.is_reserved = True
        kind.has_place.notify()  # Passes on the place for which this question was woken.
        await kind.is_drained.wait_for(lambda: member.num_open == 0 or member.problem)
        if member.problem:
            member.is_reserved = False
            return False
        member.num_open += 1
        return True

    async def _wait(self, kind: Kind) -> None:
        is_lost = all(m.problem for m in kind.members)
        try:
            await asyncio.wait_for(kind.has_place.wait(), BACK_S if is_lost else None)
        except asyncio.TimeoutError:
            problems = "; ".join(f"{m.name}: {m.problem}" for m in kind.members)
            raise Unreachable(f"no actor of {NAMESPACE} is left: {problems}") from None

    def _lose(self, kind: Kind, member: Member, error: Exception) -> None:
        if member.problem:
            return
        member.problem = str(error).strip().splitlines()[0]
        log.warning("%s is lost: %s", member.name, member.problem)
        self._ask_again(kind, member)

    async def _revive(self, kind: Kind, member: Member) -> None:
        while True:
            try:
                about, problem = await asyncio.wait_for(member.actor.state.remote(), PING_S)
                break
            except (RayActorError, RayTaskError, asyncio.TimeoutError):
                await asyncio.sleep(0.5)
        member.about = member.about or about
        if about != member.about:
            problem = f"it came back as another: {about}"
        async with kind.lock:
            member.problem = problem
            kind.has_place.notify_all()
        if problem:
            log.error("%s is set aside: %s", member.name, problem)

    async def _examine(self, member: Member) -> None:
        try:
            problem = await member.actor.examine.remote()
        except (RayActorError, RayTaskError):
            return  # The next question detects the loss.
        if problem and not member.problem:
            member.problem = problem
            log.error("%s is set aside: %s", member.name, problem)

    def revive_lost(self) -> None:
        """Starts retries for the members that did not reply to connect()."""
        for kind in (self._prepare, self._measure):
            for member in kind.members:
                if member.problem and not member.about:
                    self._loop.call_soon_threadsafe(self._ask_again, kind, member)

    def _ask_again(self, kind: Kind, member: Member) -> None:
        revival = self._loop.create_task(self._revive(kind, member))
        self._revivals.add(revival)
        revival.add_done_callback(self._revivals.discard)


def _judged_or_refused(reply: Json) -> Judged:
    try:
        return judged_of(reply)
    except Refused as refused:
        return Judged(None, "refused", str(refused), 0.0, {})


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
    """Starts missing actors, detached from this process, and connects to all.

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
    return connect(name, START_S)


def connect(name: str = "musacoder", wait_s: float = 30.0) -> Pool:
    """The pool of the actors that start() made.

    An actor that does not reply in `wait_s` counts as lost and is called again.  Raises Unreachable
    if no measuring actor replies, or if two actors differ.
    """
    measure, prepare = (_members(f"{name}-{kind}-", wait_s) for kind in ("measure", "prepare"))
    if not measure:
        raise Unreachable(f"no actors of the name {name}: start them with musacoder.ray.start")
    if all(member.problem for member in measure):
        raise Unreachable("; ".join(f"{m.name}: {m.problem}" for m in measure))
    pool = Pool(measure, prepare)
    pool.revive_lost()
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


def _members(prefix: str, wait_s: float) -> list[Member]:
    """Raises Unreachable where two actors are unlike."""
    members = []
    for name in _names(prefix):
        members.append(Member(name, ray.get_actor(name, namespace=NAMESPACE), about=""))
    asked = {member.actor.state.remote(): member for member in members}
    ray.wait(list(asked), num_returns=max(1, len(asked)), timeout=wait_s) if asked else None
    for reference, member in asked.items():
        try:
            member.about, member.problem = ray.get(reference, timeout=0)
        except (RayActorError, RayTaskError, ray.exceptions.GetTimeoutError) as error:
            member.problem = str(error).strip().splitlines()[0] or "it does not answer"
    known = [member for member in members if member.about]
    for member in known:
        if member.about != known[0].about:
            first = known[0]
            raise Unreachable(f"{member.name} has {member.about}, but {first.name}: {first.about}")
    return members
