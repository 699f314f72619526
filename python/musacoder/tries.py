# SPDX-License-Identifier: Apache-2.0
"""Chooses the service for a question, and whether to repeat it.  Pure rules, without I/O.

A question may be repeated at any service, since a verdict is a function of the question.  Both
clients follow the same loop:

    tries = Tries(services, timeout=3600, retry_s=60)
    while (result := tries.settle(send(tries.begin()))) is None:
        pass
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from musacoder.judged import Json, Refused, Unreachable

WAIT_S = 60.0  # After this time a service replies with a job, which the client polls.
PAUSE_S_MIN = 0.5  # The pause after a first failure; it doubles with each further one.
PAUSE_S_MAX = 16.0
ENDED_MAX = 3  # After this many ends, the question may be the cause.


@dataclass(frozen=True)
class Reply:
    status: int
    retry_after_s: float | None
    body: Json


@dataclass(frozen=True)
class ConnectionLost:
    """A connection that could not be made, or that broke before the reply."""

    problem: str


@dataclass(frozen=True)
class Attempt:
    """One request: the question, or a query of the job that it became."""

    url: str
    pause_s: float  # The pause before it is sent.
    job: str  # "" for the question itself.


class Services:
    """Addresses of equal services, with the number of requests in flight to each.

    REQUIRES: one thread or event loop at a time; Client holds a lock.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = tuple(urls)
        self._in_flight = dict.fromkeys(self.urls, 0)
        self._asked = dict.fromkeys(self.urls, 0)
        self._ready_at = dict.fromkeys(self.urls, 0.0)
        self._failures = dict.fromkeys(self.urls, 0)

    def choose(self, now: float) -> tuple[str, float]:
        """The least loaded available service, and the seconds until it is available."""

        def order(url: str) -> tuple[float, int, int]:
            return (max(self._ready_at[url] - now, 0), self._in_flight[url], self._asked[url])

        url = min(self.urls, key=order)
        return url, self.pause_s(url, now)

    def pause_s(self, url: str, now: float) -> float:
        return max(self._ready_at[url] - now, 0)

    def begin(self, url: str) -> None:
        self._in_flight[url] += 1
        self._asked[url] += 1

    def end(self, url: str) -> None:
        self._in_flight[url] -= 1

    def succeeded(self, url: str) -> None:
        self._failures[url] = 0

    def failed(self, url: str, now: float, retry_after_s: float | None) -> None:
        """Sets a service aside, for its Retry-After, or for longer with each failure."""
        self._failures[url] = min(self._failures[url] + 1, 10)
        pause = min(PAUSE_S_MIN * 2.0 ** (self._failures[url] - 1), PAUSE_S_MAX)
        if retry_after_s is not None:
            pause = min(retry_after_s, PAUSE_S_MAX)
        self._ready_at[url] = now + pause * random.uniform(1, 1.25)


class Tries:
    """The attempts at one question."""

    def __init__(
        self,
        services: Services,
        timeout: float,
        retry_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._services = services
        self._clock = clock
        self._retry_s = retry_s
        self._deadline = clock() + timeout
        self._lost_since: float | None = None
        self._ended = 0
        self._job: tuple[str, str] | None = None
        self._attempt: Attempt | None = None

    def begin(self) -> Attempt:
        """The next request.  settle() or abandon() must follow."""
        now = self._clock()
        if self._job is not None:
            url, job = self._job
            self._attempt = Attempt(url, self._services.pause_s(url, now), job)
        else:
            url, pause = self._services.choose(now)
            self._attempt = Attempt(url, pause, "")
        self._services.begin(self._attempt.url)
        return self._attempt

    def seconds_left(self) -> float:
        return max(self._deadline - self._clock(), 0)

    def abandon(self) -> None:
        """Ends an attempt that was interrupted."""
        if self._attempt is not None:
            self._services.end(self._attempt.url)
            self._attempt = None

    def settle(self, found: Reply | ConnectionLost) -> Json | None:
        """The reply's body; None if the question must be repeated.

        Raises Refused (the question is invalid) and Unreachable (no service gives a verdict in
        time).
        """
        assert self._attempt is not None
        url = self._attempt.url
        self.abandon()
        if isinstance(found, ConnectionLost):
            self._settle_lost(url, found)
            return None
        self._lost_since = None
        if found.status == 200:
            self._services.succeeded(url)
            return found.body
        problem = str(found.body.get("error", f"HTTP {found.status}"))
        if found.status == 202:
            self._job = (url, str(found.body["job"]))
        elif self._job is not None and found.status == 404:
            self._job = None  # The service no longer knows the job.
        elif found.status == 502 and self._ended < ENDED_MAX - 1:
            self._ended += 1
            self._job = None
            self._services.failed(url, self._clock(), found.retry_after_s)
        elif found.status in (429, 503):
            self._services.failed(url, self._clock(), found.retry_after_s)
        elif found.status == 502:
            raise Unreachable(f"{url}: {problem} ({ENDED_MAX} times)")
        else:
            raise Refused(problem)
        self._in_time(url, problem)
        return None

    def _settle_lost(self, url: str, lost: ConnectionLost) -> None:
        now = self._clock()
        self._services.failed(url, now, None)
        if self._job is not None and len(self._services.urls) > 1:
            self._job = None  # Another service can judge the question now.
        if self._lost_since is None:
            self._lost_since = now
        if now - self._lost_since >= self._retry_s:
            places = ", ".join(self._services.urls)
            text = f"{places}: {lost.problem}; start the service with: musacoder serve"
            raise Unreachable(text)
        self._in_time(url, lost.problem)

    def _in_time(self, url: str, problem: str) -> None:
        if self._clock() >= self._deadline:
            raise Unreachable(f"{url}: no verdict in time ({problem})")
