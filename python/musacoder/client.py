# SPDX-License-Identifier: Apache-2.0
"""A client of `musacoder serve` that needs only the standard library.

    client = musacoder.Client(["http://judge-1:8377", "http://judge-2:8377"])
    judged = client.evaluate(task=open("1_Square.py").read(), answer=completion)
    judged.reward      # None if the verdict does not judge the answer (infra, unsupported)

The services' addresses are in $MUSACODER_URL, separated by spaces or commas; the default is
http://127.0.0.1:8377.  If they need a bearer token, it is $MUSACODER_TOKEN.
"""

from __future__ import annotations

import asyncio
import functools
import http.client
import json
import os
import threading
import time
import urllib.parse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from musacoder.judged import (
    Judged,
    Json,
    Options,
    Refused,
    Unreachable,
    judged_of,
    question_of,
    task_of,
)
from musacoder.tries import WAIT_S, Attempt, ConnectionLost, Reply, Services, Tries

__all__ = ["Client", "Judged", "Refused", "Unreachable", "evaluate", "evaluate_async", "task_of"]

URL_VARIABLE = "MUSACODER_URL"
TOKEN_VARIABLE = "MUSACODER_TOKEN"
DEFAULT_URL = "http://127.0.0.1:8377"
TIMEOUT_S = 3600.0
RETRY_S = 30.0
_ASYNC_THREADS = 256  # The requests of evaluate_async in flight; the others wait.
_SOCKET_SLACK_S = 30.0  # After the service's own limit and this, a reply is lost.


def urls_of(given: str | Sequence[str] | None) -> list[str]:
    """The addresses in a text, a list or $MUSACODER_URL.  Raises Refused."""
    text = given if given else os.environ.get(URL_VARIABLE, "").strip() or DEFAULT_URL
    urls = text.replace(",", " ").split() if isinstance(text, str) else list(text)
    for url in urls:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
            raise Refused(f"{url}: expected an address such as http://judge-1:8377")
    return [url.rstrip("/") for url in urls]


def token_of(given: str | None) -> str:
    return os.environ.get(TOKEN_VARIABLE, "").strip() if given is None else given


def headers_of(token: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return headers


def retry_after_of(value: str | None) -> float | None:
    """The seconds of a Retry-After header; None for a date, and without the header."""
    return float(value) if value is not None and value.isdigit() else None


def reply_of(url: str, status: int, retry_after: str | None, body: bytes) -> Reply:
    """The reply in a body.  Raises Refused if the body is not a service's."""
    try:
        data = json.loads(body)
    except ValueError:
        raise Refused(f"{url} answers no JSON: is it musacoder serve?") from None
    return Reply(status, retry_after_of(retry_after), data if isinstance(data, dict) else {})


def path_of(attempt: Attempt, path: str) -> str:
    return (f"/v1/jobs/{attempt.job}" if attempt.job else path) + f"?wait_ms={WAIT_S * 1000:.0f}"


class Client:
    """Connections to one or more equal services.  Safe for calls from several threads.

    url: an address or several (urls_of).
    timeout: the seconds for a verdict, including waits and retries.
    token: the bearer token; None: $MUSACODER_TOKEN.
    retry_s: the seconds for which all services may be unreachable.
    """

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        timeout: float = TIMEOUT_S,
        token: str | None = None,
        retry_s: float = RETRY_S,
    ) -> None:
        self.token = token_of(token)
        self.urls = urls_of(url)
        self._timeout = timeout
        self._retry_s = retry_s
        self._lock = threading.Lock()
        self._services = Services(self.urls)  # Guarded by _lock.
        self._local = threading.local()  # The connections of a thread, by address.

    def evaluate(
        self,
        task: str | dict[str, str],
        answer: str,
        options: Options | None = None,
    ) -> Judged:
        """Judges one answer: the whole completion, or a module.

        task: the code of a KernelBench-format module, the name of a task that the service knows
            ("kernelbench:1/19"), or {"id", "code"}.
        options: options for this answer that differ from the service's own, such as
            {"precision": "bf16"}; docs/serve.md has the names.
        Raises Refused (the task is invalid) and Unreachable.
        """
        question = question_of(task, answer, options)
        return judged_of(self.post("/v1/evaluate", question))

    def post(self, path: str, body: Json) -> Json:
        """The reply to a question, which is repeated if needed.  Raises Refused and Unreachable."""
        text = json.dumps(body).encode()
        tries = Tries(self._services, self._timeout, self._retry_s)
        while True:
            with self._lock:
                attempt = tries.begin()
            try:
                time.sleep(min(attempt.pause_s, tries.seconds_left()))
                found = self._send(attempt, path, text)
            except BaseException:
                with self._lock:
                    tries.abandon()
                raise
            with self._lock:
                result = tries.settle(found)
            if result is not None:
                return result

    def close(self) -> None:
        """Closes this thread's connections; a later call opens others."""
        for connection in self._connections().values():
            connection.close()
        self._connections().clear()

    def _connections(self) -> dict[str, http.client.HTTPConnection]:
        if not hasattr(self._local, "connections"):
            self._local.connections = {}
        found: dict[str, http.client.HTTPConnection] = self._local.connections
        return found

    def _send(self, attempt: Attempt, path: str, text: bytes) -> Reply | ConnectionLost:
        connections = self._connections()
        connection = connections.get(attempt.url)
        is_new = connection is None
        if connection is None:
            parts = urllib.parse.urlsplit(attempt.url)
            connection = http.client.HTTPConnection(
                parts.hostname or "", parts.port or 80, timeout=WAIT_S + _SOCKET_SLACK_S
            )
            connections[attempt.url] = connection
        try:
            method, body = ("GET", None) if attempt.job else ("POST", text)
            connection.request(method, path_of(attempt, path), body, headers_of(self.token))
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            connections.pop(attempt.url).close()
            if is_new:
                return ConnectionLost(str(error) or type(error).__name__)
            return self._send(attempt, path, text)  # An idle connection may have been closed.
        return reply_of(attempt.url, response.status, response.getheader("Retry-After"), data)


_lock = threading.Lock()
_client: Client | None = None  # Guarded by _lock, like the next variable.
_threads: ThreadPoolExecutor | None = None


def shared_client() -> Client:
    """This process's shared client for $MUSACODER_URL."""
    global _client
    with _lock:
        if _client is None or (_client.urls, _client.token) != (urls_of(None), token_of(None)):
            _client = Client()
        return _client


def shared_threads() -> ThreadPoolExecutor:
    global _threads
    with _lock:
        if _threads is None:
            _threads = ThreadPoolExecutor(_ASYNC_THREADS, "musacoder")
        return _threads


def evaluate(task: str | dict[str, str], answer: str, options: Options | None = None) -> Judged:
    """Client.evaluate with the default address."""
    return shared_client().evaluate(task, answer, options=options)


async def evaluate_async(
    task: str | dict[str, str], answer: str, options: Options | None = None
) -> Judged:
    """The same for asyncio, with threads; use AsyncClient for more than a few hundred at once."""
    judge: Any = functools.partial(shared_client().evaluate, task, answer, options=options)
    judged: Judged = await asyncio.get_running_loop().run_in_executor(shared_threads(), judge)
    return judged
