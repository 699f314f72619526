# SPDX-License-Identifier: Apache-2.0
"""A client of `musacoder serve`.

    judged = musacoder.evaluate(task=open("1_Square.py").read(), answer=completion)
    judged.reward      # None where the verdict says nothing of the answer (infra, unsupported)

The service's address is $MUSACODER_URL, else http://127.0.0.1:8377; its bearer token, where it asks
for one, $MUSACODER_TOKEN.
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
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

DEFAULT_URL = "http://127.0.0.1:8377"
_RETRIES = 6  # After 0.5, 1, 2, ... s: of a connection that broke, and of 429 and 503.
_ASYNC_THREADS = 256  # Requests of asyncio in flight; the others wait.

Options = Mapping[str, str | int | float | bool]


class Refused(ValueError):
    """The question is wrong; asking again does not help."""


class Unreachable(ConnectionError):
    """The service does not answer."""


@dataclass(frozen=True)
class Judged:
    """What MooreEval says of an answer; `verdict` is docs/verdict.md's.

    `reward` is None where the verdict says nothing of the answer, and where the answer is right and
    the task so trivial that a constant would be right as well.
    """

    reward: float | None
    outcome: str
    feedback: str
    seconds: float
    verdict: dict[str, Any]

    @property
    def passed(self) -> bool:
        return self.outcome == "pass"


class Client:
    """Connections to one service.  Safe for calls from several threads."""

    def __init__(
        self, url: str | None = None, timeout: float = 900, token: str | None = None
    ) -> None:
        self.token = os.environ.get("MUSACODER_TOKEN", "").strip() if token is None else token
        self.url = url or os.environ.get("MUSACODER_URL", DEFAULT_URL)
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme != "http" or not parts.hostname:
            raise Refused(f"{self.url} is no http:// address")
        self._address = (parts.hostname, parts.port or 80)
        self._timeout = timeout
        self._local = threading.local()  # A connection a thread.

    def evaluate(
        self,
        task: str | dict[str, str],
        answer: str,
        infra_retries: int = 2,
        options: Options | None = None,
    ) -> Judged:
        """Judges one answer: the whole completion, or a module.

        task: the code of a KernelBench-format module, the name of a task that the service knows
        ("kernelbench:1/19"), or {"id", "code"}.
        options: how this answer is judged where that differs from the service's own options, such
        as {"precision": "bf16"}; docs/serve.md has the names.
        Raises Refused (the task is no task) and Unreachable.
        """
        question: dict[str, Any] = {"task": task_of(task), "answer": answer}
        if options:
            question["options"] = dict(options)
        for _ in range(infra_retries + 1):
            judged = self._ask(question)
            if judged.outcome != "infra":
                break
        return judged

    def _ask(self, question: dict[str, Any]) -> Judged:
        reply = self.post("/v1/evaluate", question)
        verdict = reply["verdict"]
        return Judged(
            reply["reward"],
            verdict["outcome"]["kind"],
            reply["feedback"],
            reply["seconds"],
            verdict,
        )

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """One request, asked again where the service is full or the connection broke."""
        text = json.dumps(body).encode()
        problem = ""
        for attempt in range(_RETRIES + 1):
            if attempt:
                time.sleep(0.25 * 2**attempt)
            try:
                status, data = self._send(path, text)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = str(error) or type(error).__name__
                continue
            if status == 200:
                return data
            problem = str(data.get("error", f"HTTP {status}"))
            if status not in (429, 503):
                raise Refused(problem)
        raise Unreachable(f"{self.url}: {problem}; start the service with: musacoder serve")

    def close(self) -> None:
        """Closes this thread's connection; a later call opens another."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
        self._local.connection = None

    def _send(self, path: str, text: bytes) -> tuple[int, dict[str, Any]]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(*self._address, timeout=self._timeout)
            self._local.connection = connection
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection.request("POST", path, text, headers)
        response = connection.getresponse()
        body = response.read()
        try:
            data = json.loads(body)
        except ValueError:
            raise Refused(f"{self.url} answers no JSON: is it musacoder serve?") from None
        return response.status, data if isinstance(data, dict) else {}


def task_of(task: str | dict[str, str]) -> str | dict[str, str]:
    """Code is told from a name by its line breaks."""
    return {"code": task} if isinstance(task, str) and "\n" in task else task


_lock = threading.Lock()
_client: Client | None = None
_threads: ThreadPoolExecutor | None = None


def _shared() -> tuple[Client, ThreadPoolExecutor]:
    global _client, _threads
    with _lock:
        if _client is None or _client.url != os.environ.get("MUSACODER_URL", DEFAULT_URL):
            _client = Client()
        if _threads is None:
            _threads = ThreadPoolExecutor(_ASYNC_THREADS, "musacoder")
        return _client, _threads


def evaluate(task: str | dict[str, str], answer: str, options: Options | None = None) -> Judged:
    """Client.evaluate with the default address."""
    return _shared()[0].evaluate(task, answer, options=options)


async def evaluate_async(
    task: str | dict[str, str], answer: str, options: Options | None = None
) -> Judged:
    """The same for asyncio."""
    client, threads = _shared()
    loop = asyncio.get_running_loop()
    judge = functools.partial(client.evaluate, task, answer, options=options)
    return await loop.run_in_executor(threads, judge)
