# SPDX-License-Identifier: Apache-2.0
"""The verifier: a child process that reads questions and writes replies, one per line, in any
order.

Questions wait here, in order, and only a few are with the child at a time, so that a cancelled
question costs nothing, and few questions are lost with a child.  A child reads once it can judge;
its reply to the first line shows when that is.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sqlite3
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from musacoder.server.questions import Json, Question

REPLY_BYTES_MAX = 64 << 20
SENT_MAX = 256  # Above the number of threads of any verifier.
SENDS_MAX = 3  # After this many ends of a child, the job may be the cause.
LINES_BYTES_MAX = 256 << 20  # Further waiting jobs have their lines only on disk.
LOADED_AT_ONCE = 64
LOAD_PAUSE_S = 1.0  # The pause before a store that failed is read again.
RESTARTS_MAX = 5  # The limit of consecutive children without a reply.
KILL_S = 5.0  # A child that does not end in this time is killed.
HELLO = b'{"verb": "about", "id": "hello"}'
MACHINE_FAILED = 1
BAD_INPUT = 2

Loader = Callable[[Sequence[str]], Awaitable[dict[str, bytes]]]


class QueueFull(Exception):
    """The queue is full."""


class NotReady(Exception):
    """The service accepts no question now."""


class VerifierEnded(Exception):
    """The verifier ended while it judged this question."""


@dataclass(slots=True, eq=False)
class Entry:
    """A question, from its acceptance to its reply."""

    reply: asyncio.Future[Json]
    id: str  # The caller's own id.
    task: str
    line: bytes | None  # The store has the line if this is None.
    account: str
    since: float  # The event loop's time.
    job: str = ""
    number: str = ""  # The id under which the child knows it.
    sends: int = 0


class Verifier:
    """The child, and the questions that wait for it.

    observe is called with each entry and its reply.
    """

    def __init__(
        self,
        command: list[str],
        queue_max: int,
        environment: dict[str, str],
        observe: Callable[[Entry, Json], None],
    ) -> None:
        self._command = command
        self._environment = environment
        self._observe = observe
        self.queue_max = queue_max
        self.load: Loader | None = None  # Reads the lines of jobs from the store.
        self._numbers = itertools.count()
        self._pending: deque[Entry] = deque()
        self._sent: dict[str, Entry] = {}
        self._line_bytes = 0
        self._wake = asyncio.Event()
        self._child: asyncio.subprocess.Process | None = None
        self._is_ready = False
        self._failed_children = 0  # Children in a row that ended without a reply.
        self._is_closing = False
        self._jobs = SENT_MAX  # The number of questions that the child judges at once.
        self.num_waiting = 0
        self.restarts = 0
        loop = asyncio.get_running_loop()
        self._loop = loop
        self.was_ready: asyncio.Future[None] = loop.create_future()  # It is set once.
        self.gave_up: asyncio.Future[int] = loop.create_future()

    @property
    def is_ready(self) -> bool:
        return self._is_ready

    @property
    def num_judging(self) -> int:
        """The number of questions that the child judges; it also has queued ones, so that no thread
        idles.
        """
        return min(len(self._sent), self._jobs)

    async def start(self) -> None:
        # The child ignores Ctrl-C, which is for the service; that gives the child time (--grace).
        self._child = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=REPLY_BYTES_MAX,
            env=self._environment,
            start_new_session=True,
        )
        self._reader = asyncio.create_task(self._serve(self._child))
        self._feeder = asyncio.create_task(self._feed(self._child))

    def ask(self, question: Question, account: str) -> Entry:
        """Accepts a question and waits for its reply.  Raises QueueFull and NotReady."""
        if not self._is_ready:
            raise NotReady()
        if self.num_waiting >= self.queue_max:
            raise QueueFull()
        return self.take(question.id, question.task, question.line, account)

    def take(self, name: str, task: str, line: bytes | None, account: str, job: str = "") -> Entry:
        """Accepts a question even if the queue is full or the child is not ready."""
        reply: asyncio.Future[Json] = self._loop.create_future()
        entry = Entry(reply, name, task, line, account, self._loop.time(), job)
        self.num_waiting += 1
        self._line_bytes += len(entry.line or b"")
        entry.reply.add_done_callback(lambda _: self._settled(entry))
        self._pending.append(entry)
        self._wake.set()
        return entry

    def _settled(self, entry: Entry) -> None:
        self.num_waiting -= 1
        self._line_bytes -= len(entry.line or b"")
        entry.line = None
        if entry.reply.cancelled():
            self._cancel(entry.number)
        else:
            entry.reply.exception()  # Avoids asyncio's warning for a reply that is never fetched.

    def _cancel(self, number: str) -> None:
        """Ends the judging of a question whose reply is no longer wanted."""
        if number in self._sent and self._child is not None and self._child.stdin is not None:
            self._child.stdin.write(b'{"verb": "cancel", "id": "%s"}\n' % number.encode())

    def stored(self, entry: Entry) -> None:
        """The entry's line is in the store under entry.job now, and may be dropped here."""
        if self._line_bytes > LINES_BYTES_MAX and entry.line is not None and not entry.sends:
            self._line_bytes -= len(entry.line)
            entry.line = None

    async def _feed(self, child: asyncio.subprocess.Process) -> None:
        """Writes lines to the child up to the limit."""
        stdin = child.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError):  # The reader sees that the child ended.
            stdin.write(HELLO + b"\n")
            while True:
                while self._is_ready and self._pending and len(self._sent) < self._sent_max():
                    entry = self._pending[0]
                    if entry.line is None and not entry.reply.done():
                        await self._load(entry)
                        continue  # Another question may be first now.
                    self._pending.popleft()
                    self._send(entry, stdin)
                    if stdin.transport.get_write_buffer_size() > 1 << 16:
                        await stdin.drain()
                self._wake.clear()
                await self._wake.wait()

    def _sent_max(self) -> int:
        """The number of questions to send.  A question whose child ended is sent alone, which shows
        whether it is the cause, and harms no other question.
        """
        return 1 if self._pending[0].sends else SENT_MAX

    def _send(self, entry: Entry, stdin: asyncio.StreamWriter) -> None:
        if entry.reply.done():
            return
        assert entry.line is not None
        number = entry.number = str(next(self._numbers))
        entry.sends += 1
        self._sent[number] = entry
        stdin.write(b'%s, "id": "%s"}\n' % (entry.line[:-1], number.encode()))

    async def _load(self, entry: Entry) -> None:
        assert self.load is not None
        wanted = {entry.job: entry}
        for other in itertools.islice(self._pending, LOADED_AT_ONCE):
            if other.line is None and not other.reply.done():
                wanted[other.job] = other
        try:
            found = await self.load(list(wanted))
        except sqlite3.Error as error:
            print(f"musacoder: a waiting job cannot be read: {error}", file=sys.stderr)
            await asyncio.sleep(LOAD_PAUSE_S)
            return
        for job, one in wanted.items():
            if one.reply.done():
                continue
            if job not in found:
                one.reply.set_exception(VerifierEnded())
                continue
            one.line = found[job]
            self._line_bytes += len(one.line)

    async def _serve(self, child: asyncio.subprocess.Process) -> None:
        """Hands replies out until the child ends; then starts another one, or gives up."""
        replies = 0
        try:
            replies = await self._read(child)
        except ValueError as error:  # The line is not JSON or too long.
            print(f"musacoder: the verifier's reply cannot be read: {error}", file=sys.stderr)
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        code = await child.wait()
        self._feeder.cancel()
        self._child = None
        self._is_ready = False
        self._take_back()
        if self._is_closing:
            return
        self._failed_children = 0 if replies else self._failed_children + 1
        # The child has reported the reason.  If no child has ever judged here, a retry is hopeless.
        is_hopeless = code == BAD_INPUT or not self.was_ready.done()
        if is_hopeless or self._failed_children >= RESTARTS_MAX:
            self.gave_up.set_result(code if code > 0 else MACHINE_FAILED)
            return
        print(f"musacoder: the verifier ended with {code}; it is started again", file=sys.stderr)
        self.restarts += 1
        await asyncio.sleep(min(self._failed_children, 5))
        if self._is_closing:
            return
        try:
            await self.start()
        except OSError as error:
            print(f"musacoder: cannot start the verifier: {error}", file=sys.stderr)
            self.gave_up.set_result(MACHINE_FAILED)

    def _take_back(self) -> None:
        """Jobs that the child did not finish wait again; other questions fail."""
        for entry in reversed(self._sent.values()):
            if entry.reply.done():
                continue
            if entry.job and (entry.sends < SENDS_MAX or self._is_closing):
                self._pending.appendleft(entry)
            else:
                entry.reply.set_exception(VerifierEnded())
        self._sent.clear()

    async def _read(self, child: asyncio.subprocess.Process) -> int:
        """Reads replies until the child ends; returns their number."""
        assert child.stdout is not None
        replies = 0
        while line := await child.stdout.readline():
            reply = json.loads(line)
            if not isinstance(reply, dict):
                raise ValueError("it is no JSON object")
            if reply.get("id") == "hello":
                self._is_ready = True
                self._jobs = int(reply.get("jobs", SENT_MAX))
                self._wake.set()
                if not self.was_ready.done():
                    self.was_ready.set_result(None)
                continue
            entry = self._sent.pop(str(reply.get("id")), None)
            self._wake.set()
            replies += 1
            if entry is not None and not entry.reply.done():
                self._observe(entry, reply)
                entry.reply.set_result(reply)
        return replies

    async def close(self) -> None:
        self._is_closing = True
        child = self._child
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
        done, _ = await asyncio.wait([self._reader], timeout=KILL_S)
        if not done:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await self._reader


def child_environment(without: Sequence[str]) -> dict[str, str]:
    """The service's environment without its secrets."""
    return {key: value for key, value in os.environ.items() if key not in without}
