# SPDX-License-Identifier: Apache-2.0
"""Closes connections that send no request.

aiohttp closes a connection that is idle after a request (keep-alive), but waits for a first request
without limit.  A client that opens thousands and sends nothing, or half a header, would hold all
descriptors of the process.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

FIRST_REQUEST_S = 10.0
KEEP_ALIVE_S = 75.0
SWEEP_S = 2.0


def raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def quiet_malformed_requests() -> None:
    """Keeps malformed HTTP requests, which get 400, from filling the log with tracebacks."""
    from aiohttp.http_exceptions import HttpProcessingError

    def is_ours(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))

    logging.getLogger("aiohttp.server").addFilter(is_ours)


async def close_silent(server: Any, asked: set[Any]) -> None:
    """Runs until it is cancelled.  server: aiohttp's; asked: connections that sent a request."""
    loop = asyncio.get_running_loop()
    seen: dict[Any, float] = {}
    while True:
        await asyncio.sleep(SWEEP_S)
        now, open_now = loop.time(), set(server.connections)
        asked &= open_now
        seen = {one: seen.get(one, now) for one in open_now - asked}
        for connection, since in seen.items():
            if now - since >= FIRST_REQUEST_S:
                connection.force_close()
