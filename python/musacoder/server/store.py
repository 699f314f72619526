# SPDX-License-Identifier: Apache-2.0
"""Jobs on disk, in SQLite, so that a restart of the service continues them.

One thread makes all accesses to the disk.  It commits all waiting changes in one transaction, so
that many jobs share one write, and reports a change only once it is on disk.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from musacoder.server.questions import Json

CHANGES_AT_ONCE = 1000
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  task TEXT NOT NULL,
  account TEXT NOT NULL,
  created REAL NOT NULL,
  line BLOB,
  reply BLOB,
  replied INTEGER
);
CREATE INDEX IF NOT EXISTS replied ON jobs (replied) WHERE replied IS NOT NULL;
"""

T = TypeVar("T")
Change = Callable[[sqlite3.Connection], Any]


@dataclass(frozen=True)
class Job:
    """A job that has no reply yet; name is the caller's own id."""

    id: str
    name: str
    task: str
    account: str


class Store:
    """Jobs in a file; without a folder, in a temporary file that ends with the process.

    replies_max: the number of newest replies that are kept.
    """

    def __init__(self, folder: Path | None, replies_max: int) -> None:
        """Raises OSError and sqlite3.Error."""
        self._replies_max = replies_max
        self._lock = self._lock_folder(folder)
        path = "" if folder is None else str(folder / "jobs.sqlite")
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.executescript(f"PRAGMA journal_mode=WAL; {SCHEMA}")
        newest = self._connection.execute("SELECT max(replied) FROM jobs").fetchone()[0]
        self._replied = int(newest or 0)
        self._changes: queue.SimpleQueue[tuple[Change, asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="store", daemon=True)
        self._thread.start()

    @staticmethod
    def _lock_folder(folder: Path | None) -> int | None:
        """Keeps a second service away from the same jobs."""
        if folder is None:
            return None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise OSError(f"another service uses {folder}: give --state another folder") from None
        return descriptor

    def unfinished(self) -> list[Job]:
        """The jobs without a reply, in their order.  REQUIRES: no change waits."""
        columns = "SELECT id, name, task, account FROM jobs WHERE replied IS NULL ORDER BY number"
        return [Job(*row) for row in self._connection.execute(columns)]

    async def add(self, job: Job, line: bytes) -> None:
        row = (job.id, job.name, job.task, job.account, time.time(), line)
        insert = "INSERT INTO jobs (id, name, task, account, created, line) VALUES (?,?,?,?,?,?)"
        await self._do(lambda connection: connection.execute(insert, row).rowcount)

    async def finish(self, job: str, reply: Json) -> None:
        """Keeps the reply, and removes the oldest ones."""
        text = json.dumps(reply).encode()

        def change(connection: sqlite3.Connection) -> None:
            self._replied += 1
            update = "UPDATE jobs SET reply = ?, replied = ?, line = NULL WHERE id = ?"
            connection.execute(update, (text, self._replied, job))
            oldest = self._replied - self._replies_max
            connection.execute("DELETE FROM jobs WHERE replied <= ?", (oldest,))

        await self._do(change)

    async def remove(self, job: str) -> None:
        delete = "DELETE FROM jobs WHERE id = ?"
        await self._do(lambda connection: connection.execute(delete, (job,)).rowcount)

    async def reply(self, job: str) -> Json | None:
        """The reply of a finished job; None if the job is unknown."""
        select = "SELECT reply FROM jobs WHERE id = ? AND reply IS NOT NULL"
        row = await self._do(lambda connection: connection.execute(select, (job,)).fetchone())
        return None if row is None else json.loads(row[0])

    async def lines(self, jobs: Sequence[str]) -> dict[str, bytes]:
        marks = ",".join("?" * len(jobs))
        select = f"SELECT id, line FROM jobs WHERE line IS NOT NULL AND id IN ({marks})"
        return dict(await self._do(lambda connection: connection.execute(select, jobs).fetchall()))

    async def _do(self, change: Callable[[sqlite3.Connection], T]) -> T:
        done: asyncio.Future[T] = self._loop.create_future()
        self._changes.put((change, done))
        return await done

    def _work(self) -> None:
        while (first := self._changes.get()) is not None:
            taken, is_last = [first], False
            while len(taken) < CHANGES_AT_ONCE and not self._changes.empty():
                one = self._changes.get()
                if one is None:
                    is_last = True
                    break
                taken.append(one)
            results = self._transact([change for change, _ in taken])
            self._loop.call_soon_threadsafe(_report, [done for _, done in taken], results)
            if is_last:
                return

    def _transact(self, changes: list[Change]) -> list[Any]:
        """The result of each change, or the error of all of them."""
        try:
            self._connection.execute("BEGIN")
            results = [change(self._connection) for change in changes]
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            return [error] * len(changes)
        return results

    def close(self) -> None:
        self._changes.put(None)
        self._thread.join()
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)


def _report(waiting: list[asyncio.Future[Any]], results: list[Any]) -> None:
    for done, result in zip(waiting, results):
        if done.done():
            continue
        if isinstance(result, sqlite3.Error):
            done.set_exception(result)
        else:
            done.set_result(result)
