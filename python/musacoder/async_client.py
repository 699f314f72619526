# SPDX-License-Identifier: Apache-2.0
"""The client of `musacoder serve` for asyncio.  It needs aiohttp (`musacoder[async]`).

async with musacoder.AsyncClient(["http://judge-1:8377", "http://judge-2:8377"]) as client:
    judged = await asyncio.gather(*(client.evaluate(task, answer) for answer in answers))
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from musacoder.client import (
    RETRY_S,
    TIMEOUT_S,
    headers_of,
    path_of,
    reply_of,
    token_of,
    urls_of,
)
from musacoder.judged import Judged, Json, Options, judged_of, question_of
from musacoder.tries import WAIT_S, Attempt, ConnectionLost, Reply, Services, Tries

if TYPE_CHECKING:
    import aiohttp

_SOCKET_SLACK_S = 30.0


class AsyncClient:
    """Client for one event loop; its arguments are Client's.

    connections: the maximum that are open at once; further questions wait here.
    """

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        timeout: float = TIMEOUT_S,
        token: str | None = None,
        retry_s: float = RETRY_S,
        connections: int = 1024,
    ) -> None:
        self.urls = urls_of(url)
        self.token = token_of(token)
        self._timeout = timeout
        self._retry_s = retry_s
        self._connections = connections
        self._services = Services(self.urls)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        self._session = None

    async def evaluate(
        self,
        task: str | dict[str, str],
        answer: str,
        options: Options | None = None,
    ) -> Judged:
        """Client.evaluate, awaited."""
        question = question_of(task, answer, options)
        return judged_of(await self.post("/v1/evaluate", question))

    async def post(self, path: str, body: Json) -> Json:
        """Client.post, awaited."""
        text = json.dumps(body).encode()
        tries = Tries(self._services, self._timeout, self._retry_s)
        while True:
            attempt = tries.begin()
            try:
                await asyncio.sleep(min(attempt.pause_s, tries.seconds_left()))
                found = await self._send(attempt, path, text)
            except BaseException:
                tries.abandon()
                raise
            result = tries.settle(found)
            if result is not None:
                return result

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            limits = aiohttp.TCPConnector(limit=self._connections)
            times = aiohttp.ClientTimeout(total=None, sock_read=WAIT_S + _SOCKET_SLACK_S)
            self._session = aiohttp.ClientSession(connector=limits, timeout=times)
        return self._session

    async def _send(self, attempt: Attempt, path: str, text: bytes) -> Reply | ConnectionLost:
        import aiohttp

        method, body = ("GET", None) if attempt.job else ("POST", text)
        request = self._opened().request(
            method, attempt.url + path_of(attempt, path), data=body, headers=headers_of(self.token)
        )
        try:
            async with request as response:
                data = await response.read()
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
            return ConnectionLost(str(error) or type(error).__name__)
        return reply_of(attempt.url, response.status, response.headers.get("Retry-After"), data)
