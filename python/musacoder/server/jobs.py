# SPDX-License-Identifier: Apache-2.0
"""Questions whose replies are fetched later.  The store contains a job before its id is
returned.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import sys

from musacoder.server.child import VerifierEnded, Entry, Verifier
from musacoder.server.questions import Json
from musacoder.server.store import Job, Store


class Jobs:
    def __init__(self, verifier: Verifier, store: Store) -> None:
        self._verifier = verifier
        self._store = store
        self._unfinished: dict[str, Entry] = {}
        self._finishing: dict[str, asyncio.Task[None]] = {}
        self._is_stopping = False
        verifier.load = store.lines

    def resume(self) -> list[Entry]:
        """Continues an earlier service's unfinished jobs."""
        entries = [
            self._verifier.take(job.name, job.task, None, job.account, job.id)
            for job in self._store.unfinished()
        ]
        for entry in entries:
            self._follow(entry)
        return entries

    async def keep(self, entry: Entry) -> str:
        """Stores a question as a job and returns its id, which gives access to the reply.

        REQUIRES: there is no reply yet.
        """
        job = secrets.token_urlsafe(16)
        assert entry.line is not None
        await self._store.add(Job(job, entry.id, entry.task, entry.account), entry.line)
        entry.job = job
        self._verifier.stored(entry)
        self._follow(entry)
        return job

    def _follow(self, entry: Entry) -> None:
        self._unfinished[entry.job] = entry
        entry.reply.add_done_callback(lambda _: self._finish(entry))

    def _finish(self, entry: Entry) -> None:
        if self._is_stopping and (entry.reply.cancelled() or entry.reply.exception()):
            return  # The next service continues the job.
        task = asyncio.ensure_future(self._record(entry))
        self._finishing[entry.job] = task

    async def _record(self, entry: Entry) -> None:
        try:
            if entry.reply.cancelled():
                await self._store.remove(entry.job)
            else:
                await self._store.finish(entry.job, self.reply_of(entry))
        except sqlite3.Error as error:
            print(f"musacoder: a job's reply is not kept: {error}", file=sys.stderr)
        self._unfinished.pop(entry.job, None)
        self._finishing.pop(entry.job, None)

    @staticmethod
    def reply_of(entry: Entry) -> Json:
        """The reply, under the caller's id."""
        if isinstance(entry.reply.exception(), VerifierEnded):
            return {"id": entry.id, "error": "the verifier ended while it judged this", "code": 502}
        return {**entry.reply.result(), "id": entry.id}

    def unfinished(self, job: str) -> Entry | None:
        return self._unfinished.get(job)

    async def finished(self, job: str) -> Json | None:
        """The stored reply; None if the job is unknown or too old."""
        return await self._store.reply(job)

    async def forget(self, job: str) -> None:
        """Removes a job that has a reply or was cancelled."""
        await asyncio.sleep(0)  # Lets the reply's callbacks run.
        if job in self._finishing:
            await asyncio.wait([self._finishing[job]])
        await self._store.remove(job)

    async def stop(self) -> None:
        """Leaves unfinished jobs to the next service, and waits for replies that are being
        stored.
        """
        self._is_stopping = True
        if self._finishing:
            await asyncio.wait(self._finishing.values())
