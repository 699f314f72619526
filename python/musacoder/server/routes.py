# SPDX-License-Identifier: Apache-2.0
"""The service's HTTP (docs/serve.md; openapi.json has the same for programs)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from musacoder.server import compat
from musacoder.server.accounts import ANYBODY, Account, OverQuota
from musacoder.server.child import VerifierEnded, Entry, QueueFull, NotReady, Verifier
from musacoder.server.gate import Gate, Refusal
from musacoder.server.jobs import Jobs
from musacoder.server.questions import Json, Question, Invalid, check_members, id_of, parse_question
from musacoder.server.stats import Stats

BODY_BYTES_MAX = 25 << 20  # A question of 4 MiB, each byte as \uXXXX.
BATCH_BYTES_MAX = 64 << 20
BODIES_BYTES_MAX = 512 << 20  # The limit for all bodies that are being read at once.
BODY_S = 60.0  # The limit for receiving a body.
BATCH_MAX = 1024
WAIT_MS = 900_000
HERE = Path(__file__).resolve().parent
HEALTH = ("/healthz", "/livez", "/readyz")
PUBLIC = (*HEALTH, "/", "/openapi.json")  # Need no token, show no question.

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ACCOUNT = "account"  # A request's key for the caller's Account.


def error(status: int, text: str, **headers: str) -> web.Response:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return web.json_response({"error": text}, status=status, headers=named)


class Service:
    """The routes."""

    def __init__(self, verifier: Verifier, jobs: Jobs, gate: Gate, stats: Stats) -> None:
        self._verifier = verifier
        self._jobs = jobs
        self._gate = gate
        self._stats = stats
        self._entries: set[Entry] = set()
        self._is_stopping = False
        self._bodies_bytes = 0
        self.asked: set[Any] = set()  # The connections that sent a request.
        self._openapi = json.loads((HERE / "openapi.json").read_text())
        self._page, self._page_policy = load_page()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=BATCH_BYTES_MAX, middlewares=[self._guard()])
        app.add_routes(
            [
                web.post("/v1/evaluate", self.evaluate),
                web.post("/v1/evaluate/batch", self.batch),
                web.get("/v1/jobs/{id}", self.job, allow_head=False),
                web.delete("/v1/jobs/{id}", self.cancel),
                web.post("/v1/compat/slime", self.slime),
                web.post("/verify", self.nemo_verify),
                web.post("/seed_session", self.nemo_session),
                web.post("/close_session", self.nemo_session),
                web.get("/v1/status", self.status, allow_head=False),
                web.get("/metrics", self.metrics, allow_head=False),
                web.get("/openapi.json", self.openapi, allow_head=False),
                web.get("/", self.page, allow_head=False),
                web.get("/healthz", self.health, allow_head=False),
                web.get("/livez", self.live, allow_head=False),
                web.get("/readyz", self.health, allow_head=False),
            ]
        )
        return app

    def _guard(self) -> Any:
        @web.middleware
        async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
            self.asked.add(request.protocol)
            response = await self._answered(request, handler)
            self._stats.responses[response.status] += 1
            return response

        return middleware

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            needs_token = request.path not in PUBLIC
            request[ACCOUNT] = self._gate.check(request, needs_token)
            return await handler(request)
        except Refusal as refusal:
            return error(refusal.status, str(refusal), **refusal.headers)
        except Invalid as wrong:
            return error(400, str(wrong))
        except QueueFull:
            return error(429, "too many questions are waiting", Retry_After="1")
        except OverQuota as over:
            return error(429, str(over), Retry_After=str(over.retry_after_s))
        except NotReady:
            return error(503, "the verifier is being started", Retry_After="2")
        except VerifierEnded:
            text = "the verifier ended while it judged this, and is started again"
            return error(502, text, Retry_After="1")
        except web.HTTPException as problem:
            allow = {"Allow": problem.headers["Allow"]} if "Allow" in problem.headers else {}
            return error(problem.status, problem.reason, **allow)

    async def _body(self, request: web.Request, bytes_max: int = BODY_BYTES_MAX) -> Any:
        size = request.content_length or bytes_max
        if size > bytes_max:
            raise web.HTTPRequestEntityTooLarge(bytes_max, size)
        if self._bodies_bytes + size > BODIES_BYTES_MAX and self._bodies_bytes:
            raise QueueFull()
        self._bodies_bytes += size
        try:
            async with asyncio.timeout(BODY_S):
                return json.loads(await request.read())
        except TimeoutError:
            raise web.HTTPRequestTimeout() from None
        except (ValueError, RecursionError):
            raise Invalid("the body is no JSON") from None
        finally:
            self._bodies_bytes -= size

    def _take(self, question: Question, account: Account) -> Entry:
        """Accepts a question.  Raises NotReady and QueueFull."""
        if self._is_stopping:
            raise NotReady()
        entry = self._verifier.ask(question, account.name)
        self._follow(entry, account)
        return entry

    def _check_room(self, account: Account, count: int) -> None:
        """Raises NotReady, QueueFull and OverQuota."""
        if self._is_stopping or not self._verifier.is_ready:
            raise NotReady()
        if self._verifier.num_waiting + count > self._verifier.queue_max:
            raise QueueFull()
        if account is not ANYBODY:
            account.take(count)

    def _follow(self, entry: Entry, account: Account) -> None:
        self._entries.add(entry)
        entry.reply.add_done_callback(lambda _: self._entries.discard(entry))
        if account is not ANYBODY:
            entry.reply.add_done_callback(lambda _: account.give_back())

    def resume(self) -> None:
        """Continues the jobs of an earlier service, within their accounts or beyond."""
        for entry in self._jobs.resume():
            account = self._gate.accounts.named(entry.account)
            if account is not ANYBODY:
                account.num_waiting += 1
            self._follow(entry, account)

    async def stop(self, grace_s: float, second_signal: asyncio.Event) -> None:
        """Accepts no more questions, and waits for accepted ones, for `grace_s` or until
        `second_signal`.
        """
        self._is_stopping = True
        replies = [entry.reply for entry in self._entries]
        ends: list[asyncio.Task[Any]] = [asyncio.create_task(second_signal.wait())]
        if replies:
            ends.append(asyncio.create_task(_all_of(replies)))
            await asyncio.wait(ends, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        await self._jobs.stop()
        for entry in list(self._entries):
            entry.reply.cancel()

    def _wait_s(self, request: web.Request) -> float:
        text = request.query.get("wait_ms")
        wait_ms = WAIT_MS if text is None else compat.number_of(text, "wait_ms")
        return min(max(wait_ms, 0), WAIT_MS) / 1000

    def _reply(self, reply: Json) -> web.Response:
        # An error means that the question was invalid and not judged.
        status = int(reply.get("code", 422)) if "error" in reply else 200
        if reply.get("kind") == "infra":
            status = 502  # The verifier's machine failed; the question is valid.
        return web.json_response(reply, status=status)

    async def evaluate(self, request: web.Request) -> web.Response:
        question = parse_question(await self._body(request))
        wait_s = self._wait_s(request)
        self._check_room(request[ACCOUNT], 1)
        entry = self._take(question, request[ACCOUNT])
        try:
            await asyncio.wait([entry.reply], timeout=wait_s)
        except asyncio.CancelledError:  # The connection ended, and there is no job.
            entry.reply.cancel()
            raise
        if entry.reply.done():
            return self._finished(entry)
        job = await asyncio.shield(self._jobs.keep(entry))
        return self._later(job, entry)

    def _finished(self, entry: Entry) -> web.Response:
        if entry.reply.cancelled() and self._is_stopping:
            raise NotReady()
        if entry.reply.cancelled():
            raise web.HTTPNotFound(reason="the job was cancelled")
        if not entry.job and isinstance(entry.reply.exception(), VerifierEnded):
            raise VerifierEnded()
        return self._reply(Jobs.reply_of(entry))

    def _later(self, job: str, entry: Entry) -> web.Response:
        waited = asyncio.get_running_loop().time() - entry.since
        return web.json_response({"job": job, "seconds": waited}, status=202)

    async def job(self, request: web.Request) -> web.Response:
        job, wait_s = request.match_info["id"], self._wait_s(request)
        entry = self._jobs.unfinished(job)
        if entry is None:
            return self._reply(await self._kept(job))
        await asyncio.wait([entry.reply], timeout=wait_s)
        return self._finished(entry) if entry.reply.done() else self._later(job, entry)

    async def _kept(self, job: str) -> Json:
        reply = await self._jobs.finished(job)
        if reply is None:
            raise web.HTTPNotFound(reason="no such job")
        return reply

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancels a question whose reply is no longer wanted."""
        job = request.match_info["id"]
        entry = self._jobs.unfinished(job)
        if entry is None:
            await self._kept(job)
        else:
            entry.reply.cancel()
        await self._jobs.forget(job)
        return web.json_response({"job": job})

    async def batch(self, request: web.Request) -> web.StreamResponse:
        data = await self._body(request, BATCH_BYTES_MAX)
        items = data.get("items") if isinstance(data, dict) else None
        if isinstance(data, dict):
            check_members(data, ("items",), "a batch")
        if not isinstance(items, list) or not 0 < len(items) <= BATCH_MAX:
            raise Invalid(f'a batch needs "items", a list of 1 to {BATCH_MAX} questions')
        account = request[ACCOUNT]
        parsed = [self._parsed(item) for item in items]
        good = sum(isinstance(item, Question) for item in parsed)
        self._check_room(account, good)
        taken = [
            self._take(item, account) if isinstance(item, Question) else item for item in parsed
        ]
        work = [asyncio.create_task(self._item(one)) for one in taken]
        try:
            if "application/x-ndjson" in request.headers.get("Accept", ""):
                return await self._stream(request, work)
            return web.json_response({"replies": await asyncio.gather(*work)})
        except BaseException:
            for one in work:
                one.cancel()
            raise

    def _parsed(self, item: Any) -> Question | Json:
        """The parsed question, or its error, which does not affect the rest of a batch."""
        try:
            return parse_question(item)
        except Invalid as wrong:
            return {"id": id_of(item), "error": str(wrong)}

    async def _item(self, taken: Entry | Json) -> Json:
        if isinstance(taken, dict):
            return taken
        try:
            return {**await taken.reply, "id": taken.id}
        except VerifierEnded:  # One failure does not affect the rest of a batch.
            return {"id": taken.id, "error": "the verifier ended", "kind": "infra"}

    async def _stream(
        self, request: web.Request, work: list[asyncio.Task[Json]]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        for one in asyncio.as_completed(work):
            await response.write(json.dumps(await one).encode() + b"\n")
        return response

    async def _judged(self, question: Question, account: Account) -> Json:
        """The reply, for forms that have no jobs."""
        self._check_room(account, 1)
        entry = self._take(question, account)
        try:
            return await entry.reply
        except asyncio.CancelledError:
            if self._is_stopping:
                raise NotReady() from None
            raise

    async def slime(self, request: web.Request) -> web.Response:
        question = parse_question(compat.slime_question(await self._body(request)))
        unscored = request.query.get("unscored")
        if unscored is not None:
            compat.number_of(unscored, "unscored")
        reply = await self._judged(question, request[ACCOUNT])
        if "error" in reply:
            return self._reply({**reply, "id": ""})
        if reply["verdict"]["outcome"]["kind"] == "infra":
            raise NotReady()
        return web.json_response(compat.slime_score(reply, unscored))

    async def nemo_verify(self, request: web.Request) -> web.Response:
        data = await self._body(request)
        question = parse_question(compat.nemo_question(data))
        reply = await self._judged(question, request[ACCOUNT])
        if "error" in reply:
            return self._reply({**reply, "id": ""})
        return web.json_response(compat.nemo_response(data, reply))

    async def nemo_session(self, request: web.Request) -> web.Response:
        return web.json_response(compat.nemo_session(await self._body(request)))

    @property
    def _state(self) -> str:
        return "stopping" if self._is_stopping else "ok" if self._verifier.is_ready else "starting"

    async def health(self, request: web.Request) -> web.Response:
        status = {
            "status": self._state,
            "waiting": self._verifier.num_waiting,
            "judged": self._stats.judged,
            "seconds": self._stats.seconds,
        }
        return web.json_response(status, status=200 if self._state == "ok" else 503)

    async def live(self, request: web.Request) -> web.Response:
        return web.json_response({"status": self._state})

    async def status(self, request: web.Request) -> web.Response:
        queue = {
            "status": self._state,
            "waiting": self._verifier.num_waiting - self._verifier.num_judging,
            "judging": self._verifier.num_judging,
            "queue": self._verifier.queue_max,
            "restarts": self._verifier.restarts,
        }
        return web.json_response({**queue, **self._stats.snapshot()})

    async def metrics(self, request: web.Request) -> web.Response:
        verifier = self._verifier
        gauges = {
            "ready": ("Whether questions are taken.", float(self._state == "ok")),
            "questions_waiting": (
                "Questions that wait to be judged.",
                verifier.num_waiting - verifier.num_judging,
            ),
            "questions_judging": ("Questions that are being judged.", verifier.num_judging),
            "queue_limit": ("Questions that may wait.", verifier.queue_max),
            "verifier_restarts_total": ("Verifiers that were started again.", verifier.restarts),
        }
        text = self._stats.metrics({key: (a, float(b)) for key, (a, b) in gauges.items()})
        response = web.Response(body=text.encode())
        response.headers["Content-Type"] = "text/plain; version=0.0.4; charset=utf-8"
        return response

    async def openapi(self, request: web.Request) -> web.Response:
        return web.json_response(self._openapi)

    async def page(self, request: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": self._page_policy, "Cache-Control": "no-store"}
        return web.Response(text=self._page, content_type="text/html", headers=headers)


async def _all_of(replies: list[asyncio.Future[Json]]) -> None:
    await asyncio.wait(replies)


def load_page() -> tuple[str, str]:
    """The page, and the policy under which a browser runs only the page's own script."""
    page = (HERE / "page.html").read_text()
    allowed = {}
    for tag in ("script", "style"):
        found = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert found is not None
        digest = hashlib.sha256(found[1].encode()).digest()
        allowed[tag] = f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'"
    rest = "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
    frames = "frame-ancestors 'none'"
    policy = f"default-src 'none'; {allowed['script']}; {allowed['style']}; {rest}; {frames}"
    return page, policy
