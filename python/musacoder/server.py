# SPDX-License-Identifier: Apache-2.0
"""`musacoder serve`: MooreEval over HTTP (docs/serve.md).

One process of `musacoder eval --stream` judges; this one takes requests, keeps the queue and hands
replies out.  HTTP is aiohttp's.  Everything runs on one event loop, so nothing here is locked.

A task is code that the judge runs, so a request is a right to run code on this machine, in a
sandbox that can read files.  The gate (gate.py) therefore refuses what a web page in a browser can
send.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import secrets
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

# `musacoder serve` starts this file by its path.
if str(Path(__file__).resolve().parents[1]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from musacoder.gate import TOKEN_VARIABLE, Gate, Refusal, gate_of  # noqa: E402

Json = dict[str, Any]

QUESTION_BYTES_MAX = 4 << 20  # As src/cli/service.h.
BATCH_BYTES_MAX = 64 << 20
BATCH_MAX = 1024
REPLY_BYTES_MAX = 64 << 20
JOBS_KEPT = 10_000
WAIT_MS = 900_000
RETRIES_OF_INFRA = 2
RESTARTS_MAX = 5  # Of a verifier that ends without one reply.
KILL_S = 5.0  # A verifier that does not end in this time is killed.
MACHINE_FAILED = 1
BAD_INPUT = 2
HEALTH = "/healthz"
HELLO = "hello"  # The id of the first line to a verifier; its reply says that it reads.


class Wrong(Exception):
    """What the caller did wrong."""


class Full(Exception):
    """More is waiting than --queue."""


class Verifier:
    """A child that reads questions and writes replies, a line each, in any order.

    It reads once it can judge.  A line without a task gets an error then, and so tells when.
    """

    def __init__(self, command: list[str], queue_max: int) -> None:
        self._command = command
        self.queue_max = queue_max
        self._numbers = itertools.count()
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._child: asyncio.subprocess.Process | None = None
        self._is_ready = False
        self._barren = 0  # Children in a row that ended without a reply.
        self._is_closing = False
        self.judged = 0
        loop = asyncio.get_running_loop()
        self.was_ready: asyncio.Future[None] = loop.create_future()  # For the first time.
        self.gave_up: asyncio.Future[int] = loop.create_future()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_ready(self) -> bool:
        return self._is_ready

    async def start(self) -> None:
        # Ctrl-C in a terminal is for the service, which gives the verifier time (--grace).
        environment = {key: value for key, value in os.environ.items() if key != TOKEN_VARIABLE}
        self._child = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=REPLY_BYTES_MAX,
            env=environment,
            start_new_session=True,
        )
        self._reader = asyncio.create_task(self._serve(self._child))
        await self._write(json.dumps({"id": HELLO}))

    async def ask(self, question: Json) -> Json:
        """The reply to one question.  Raises Unready where the verifier ended meanwhile."""
        if not self._is_ready:
            raise Unready()
        if len(self._waiting) >= self.queue_max:
            raise Full()
        number = str(next(self._numbers))
        reply: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            await self._write(line_of({**question, "id": number}))
            found = await reply
        finally:
            self._waiting.pop(number, None)
        self.judged += 1
        return {**found, "id": question.get("id", "")}

    async def _write(self, line: str) -> None:
        if self._child is None or self._child.stdin is None:
            raise Unready()
        self._child.stdin.write(line.encode() + b"\n")
        with contextlib.suppress(ConnectionError):  # The reader sees that it ended.
            await self._child.stdin.drain()

    async def _serve(self, child: asyncio.subprocess.Process) -> None:
        """Hands replies out until the child ends; then starts another one, or gives up."""
        replies = 0
        try:
            replies = await self._read(child)
        except ValueError as error:  # Not JSON, or a line that is too long.
            print(f"musacoder: the verifier's reply cannot be read: {error}", file=sys.stderr)
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        code = await child.wait()
        self._child = None
        self._is_ready = False
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Unready())
        if self._is_closing:
            return
        self._barren = 0 if replies else self._barren + 1
        # It has said why.  One that never judged here will not do so later.
        is_hopeless = code == BAD_INPUT or not self.was_ready.done()
        if is_hopeless or self._barren >= RESTARTS_MAX:
            self.gave_up.set_result(code if code > 0 else MACHINE_FAILED)
            return
        print(f"musacoder: the verifier ended with {code}; it is started again", file=sys.stderr)
        await asyncio.sleep(min(self._barren, 5))
        await self.start()

    async def _read(self, child: asyncio.subprocess.Process) -> int:
        """How many replies came."""
        assert child.stdout is not None
        replies = 0
        while line := await child.stdout.readline():
            reply = json.loads(line)
            if not isinstance(reply, dict):
                raise ValueError("it is no JSON object")
            if reply.get("id") == HELLO:
                self._is_ready = True
                if not self.was_ready.done():
                    self.was_ready.set_result(None)
                continue
            waiting = self._waiting.get(str(reply.get("id")))
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)
            replies += 1
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


class Unready(Exception):
    """The verifier is not there, or ended while it judged."""


def line_of(question: Json) -> str:
    """A question as the verifier reads it.  UTF-8, so that it is no longer than its texts."""
    return json.dumps(question, ensure_ascii=False)


def parse_question(data: Any) -> Json:
    """A question for the verifier; Wrong says what it lacks."""
    if not isinstance(data, dict):
        raise Wrong("a question is a JSON object")
    if not isinstance(data.get("answer"), str):
        raise Wrong('a question needs "answer", a text')
    task = data.get("task")
    if isinstance(task, dict):
        if not isinstance(task.get("code"), str):
            raise Wrong('"task" needs "code", a text')
        task = {key: task[key] for key in ("id", "code") if isinstance(task.get(key), str)}
    elif not isinstance(task, str):
        raise Wrong('a question needs "task": a name, or {"id", "code"}')
    elif "\n" in task:
        task = {"code": task}
    elif task.startswith((".", "/", "~")) or task.endswith((".py", ".jsonl")) or ".." in task:
        raise Wrong('"task" names no file here: send {"id", "code"}')
    question = {"task": task, "answer": data["answer"], "id": str(data.get("id", ""))}
    if "options" in data:
        question["options"] = data["options"]
    try:
        size = len(line_of(question).encode())
    except UnicodeEncodeError:
        raise Wrong("a lone surrogate, half of a UTF-16 pair, is in no text: remove it") from None
    if size > QUESTION_BYTES_MAX:
        raise Wrong(f"a question has at most {QUESTION_BYTES_MAX} bytes")
    return question


def id_of(item: Any) -> str:
    return str(item.get("id", "")) if isinstance(item, dict) else ""


class Job:
    def __init__(self, work: asyncio.Task[Json]) -> None:
        self.work = work
        self.since = time.monotonic()


class Service:
    """The routes."""

    def __init__(self, verifier: Verifier, gate: Gate) -> None:
        from aiohttp import web

        self._web = web
        self._verifier = verifier
        self._gate = gate
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._work: set[asyncio.Task[Json]] = set()
        self._is_stopping = False
        self._started = time.monotonic()

    def app(self) -> Any:
        web = self._web
        app = web.Application(client_max_size=BATCH_BYTES_MAX, middlewares=[self._errors()])
        app.add_routes(
            [
                web.post("/v1/evaluate", self.evaluate),
                web.post("/v1/evaluate/batch", self.batch),
                web.get("/v1/jobs/{id}", self.job),
                web.delete("/v1/jobs/{id}", self.cancel),
                web.post("/v1/compat/slime", self.slime),
                web.get(HEALTH, self.health),
            ]
        )
        return app

    def _errors(self) -> Any:
        web = self._web

        def error(status: int, text: str, **headers: str) -> Any:
            return web.json_response({"error": text}, status=status, headers=headers)

        @web.middleware  # type: ignore[untyped-decorator]
        async def middleware(request: Any, handler: Any) -> Any:
            try:
                self._gate.check(request, needs_token=request.path != HEALTH)
                return await handler(request)
            except Refusal as refusal:
                return error(refusal.status, str(refusal), **refusal.headers)
            except Wrong as wrong:
                return error(400, str(wrong))
            except Full:
                return error(429, "too many questions are waiting", **{"Retry-After": "1"})
            except Unready:
                return error(503, "the verifier is being started", **{"Retry-After": "2"})
            except web.HTTPException as problem:
                return error(problem.status, problem.reason)

        return middleware

    async def _body(self, request: Any) -> Any:
        try:
            return json.loads(await request.read())
        except (ValueError, RecursionError):
            raise Wrong("the body is no JSON") from None

    def _begin(self, question: Json) -> asyncio.Task[Json]:
        """Its reply, in time.  Raises Unready where no question is taken."""
        if self._is_stopping or not self._verifier.is_ready:
            raise Unready()
        work = asyncio.create_task(self._verifier.ask(question))
        self._work.add(work)
        work.add_done_callback(self._ended)
        return work

    def _ended(self, work: asyncio.Task[Json]) -> None:
        self._work.discard(work)
        if not work.cancelled():
            work.exception()  # Seen, so that a job that nobody asks for is no warning.

    async def stop(self, grace_s: float, hurry: asyncio.Event) -> None:
        """Takes no more, and waits for what was taken, for `grace_s` or until `hurry`."""
        self._is_stopping = True
        hurried = asyncio.create_task(hurry.wait())
        taken = asyncio.gather(*self._work, return_exceptions=True)
        ends: list[asyncio.Future[Any]] = [hurried, taken]
        await asyncio.wait(ends, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        for work in self._work:
            work.cancel()

    def _wait_s(self, request: Any) -> float:
        try:
            return min(max(float(request.query.get("wait_ms", WAIT_MS)), 0), WAIT_MS) / 1000
        except ValueError:
            raise Wrong("wait_ms is a number") from None

    def _reply(self, reply: Json) -> Any:
        # The task is none: that is the caller's, and is not judged.
        return self._web.json_response(reply, status=422 if "error" in reply else 200)

    async def evaluate(self, request: Any) -> Any:
        question = parse_question(await self._body(request))
        wait_s = self._wait_s(request)
        if self._verifier.num_waiting >= self._verifier.queue_max:
            raise Full()
        name = secrets.token_urlsafe(16)  # Knowing it is the right to the reply.
        self._jobs[name] = Job(self._begin(question))
        while len(self._jobs) > JOBS_KEPT:
            self._jobs.popitem(last=False)
        return await self._wait(name, wait_s)

    async def _wait(self, name: str, wait_s: float) -> Any:
        job = self._jobs[name]
        done, _ = await asyncio.wait([job.work], timeout=wait_s)
        if not done:
            waited = time.monotonic() - job.since
            return self._web.json_response({"job": name, "seconds": waited}, status=202)
        if job.work.cancelled() and self._is_stopping:
            raise Unready()
        if job.work.cancelled():
            return self._web.json_response({"job": name, "error": "cancelled"}, status=410)
        return self._reply(job.work.result())

    def _known(self, request: Any) -> str:
        name = request.match_info["id"]
        if name not in self._jobs:
            raise self._web.HTTPNotFound(reason="no such job")
        return str(name)

    async def job(self, request: Any) -> Any:
        return await self._wait(self._known(request), self._wait_s(request))

    async def cancel(self, request: Any) -> Any:
        """The reply is no longer waited for; what is being judged is judged to its end."""
        name = self._known(request)
        self._jobs[name].work.cancel()
        return self._web.json_response({"job": name})

    async def batch(self, request: Any) -> Any:
        data = await self._body(request)
        items = data.get("items") if isinstance(data, dict) else None
        if not isinstance(items, list) or not 0 < len(items) <= BATCH_MAX:
            raise Wrong(f'a batch needs "items", a list of 1 to {BATCH_MAX} questions')
        if self._verifier.num_waiting + len(items) > self._verifier.queue_max:
            raise Full()
        work = [asyncio.create_task(self._item(item)) for item in items]
        if "application/x-ndjson" in request.headers.get("Accept", ""):
            return await self._stream(request, work)
        return self._web.json_response({"replies": await asyncio.gather(*work)})

    async def _item(self, item: Any) -> Json:
        """The reply to one of a batch; what is wrong with it is its own affair."""
        try:
            return await self._begin(parse_question(item))
        except Wrong as wrong:
            return {"id": id_of(item), "error": str(wrong)}

    async def _stream(self, request: Any, work: list[asyncio.Task[Json]]) -> Any:
        response = self._web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        for one in asyncio.as_completed(work):
            await response.write(json.dumps(await one).encode() + b"\n")
        return response

    async def slime(self, request: Any) -> Any:
        """slime's remote_rm: {prompt, response, label} to {score, ...}; label is the task."""
        data = await self._body(request)
        if not isinstance(data, dict):
            raise Wrong("the body is a JSON object")
        question = parse_question({"task": data.get("label"), "answer": data.get("response")})
        for _ in range(RETRIES_OF_INFRA + 1):
            reply = await self._begin(question)
            if "error" in reply:
                return self._reply(reply)
            outcome = reply["verdict"]["outcome"]["kind"]
            if outcome != "infra":
                break
        if outcome == "infra":
            raise Unready()
        score = reply["reward"]
        if score is None and "unscored" in request.query:
            try:
                score = float(request.query["unscored"])
            except ValueError:
                raise Wrong("unscored is a number") from None
        return self._web.json_response(
            {"score": score, "outcome": outcome, "feedback": reply["feedback"]}
        )

    async def health(self, request: Any) -> Any:
        is_ready = self._verifier.is_ready and not self._is_stopping
        status = {
            "status": "stopping" if self._is_stopping else "ok" if is_ready else "starting",
            "waiting": self._verifier.num_waiting,
            "judged": self._verifier.judged,
            "seconds": time.monotonic() - self._started,
        }
        return self._web.json_response(status, status=200 if is_ready else 503)


@contextlib.asynccontextmanager
async def running(
    arguments: argparse.Namespace, gate: Gate, hurry: asyncio.Event
) -> AsyncIterator[tuple[int, Verifier]]:
    """The service, for as long as the block runs: its port and its verifier."""
    from aiohttp import web

    verifier = Verifier(arguments.verifier, arguments.queue)
    service = Service(verifier, gate)
    runner = web.AppRunner(service.app(), access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, arguments.host, arguments.port).start()
        await verifier.start()
        yield runner.addresses[0][1], verifier
        await service.stop(arguments.grace, hurry)
    finally:
        await runner.cleanup()
        await verifier.close()


async def serve(arguments: argparse.Namespace, gate: Gate) -> int:
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    hurry = asyncio.Event()

    def stop() -> None:
        if stopped.done():  # A second signal ends the grace.
            hurry.set()
        else:
            stopped.set_result(0)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    async with running(arguments, gate, hurry) as (port, verifier):
        ends: set[asyncio.Future[Any]] = {stopped, verifier.gave_up}
        await asyncio.wait({*ends, verifier.was_ready}, return_when=asyncio.FIRST_COMPLETED)
        if verifier.was_ready.done():
            host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
            print(f"listening on http://{host}:{port}", flush=True)
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return int(done.pop().result())


def seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def main() -> int:
    parser = argparse.ArgumentParser(prog="musacoder serve", allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8377)
    parser.add_argument("--queue", type=int, default=4096)
    parser.add_argument("--grace", type=seconds, default=30.0)
    parser.add_argument("--token-file", default="")
    parser.add_argument("--allow-host", action="append", default=[])
    parser.add_argument("verifier", nargs="+", help="its command, after --")
    arguments = parser.parse_args()
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        text = f"serve needs aiohttp: {sys.executable} -m pip install aiohttp"
        print(f"musacoder: {text}", file=sys.stderr)
        return BAD_INPUT
    try:
        gate = gate_of(arguments.host, arguments.token_file, arguments.allow_host)
    except ValueError as error:
        print(f"musacoder: {error}", file=sys.stderr)
        return BAD_INPUT
    try:
        return asyncio.run(serve(arguments, gate))
    except OSError as error:
        where = f"{arguments.host}:{arguments.port}"
        print(f"musacoder: cannot listen on {where}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
