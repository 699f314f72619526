# SPDX-License-Identifier: Apache-2.0
"""`musacoder serve` starts this file by its path (src/cli/serve.cc)."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

# This folder would hide other packages of the same names.  Under -P it is not on the path.
if __package__ in (None, ""):
    sys.path[: 0 if sys.flags.safe_path else 1] = [str(Path(__file__).resolve().parents[2])]

from musacoder.server.child import BAD_INPUT, Entry, Verifier, child_environment  # noqa: E402
from musacoder.server.gate import TOKEN_VARIABLE, Gate, gate_of  # noqa: E402
from musacoder.server.questions import Json  # noqa: E402
from musacoder.server.stats import Stats  # noqa: E402
from musacoder.server.store import Store  # noqa: E402

REPLIES_KEPT = 10_000


@contextlib.asynccontextmanager
async def running(
    arguments: argparse.Namespace, gate: Gate, second_signal: asyncio.Event
) -> AsyncIterator[tuple[int, Verifier]]:
    """The service, for as long as the block runs: its port and its verifier."""
    from aiohttp import web

    from musacoder.server import connections
    from musacoder.server.jobs import Jobs
    from musacoder.server.routes import Service

    stats = Stats()
    loop = asyncio.get_running_loop()

    def observe(entry: Entry, reply: Json) -> None:
        # The child has a queue as well, and reports how long it judged.
        seconds = reply.get("seconds")
        judging = float(seconds) if isinstance(seconds, (int, float)) else 0.0
        waited = max(0.0, loop.time() - entry.since - judging)
        stats.add(entry.task, entry.account, waited, judging, reply)

    connections.raise_descriptor_limit()
    connections.quiet_malformed_requests()
    environment = child_environment(without=[TOKEN_VARIABLE])
    verifier = Verifier(arguments.verifier, arguments.queue, environment, observe)
    store = open_store(arguments)
    service = Service(verifier, Jobs(verifier, store), gate, stats)
    runner = web.AppRunner(
        service.app(),
        access_log=None,
        shutdown_timeout=1,
        keepalive_timeout=connections.KEEP_ALIVE_S,
        handler_cancellation=True,
    )
    await runner.setup()
    sweep = asyncio.create_task(connections.close_silent(runner.server, service.asked))
    try:
        site = web.TCPSite(runner, arguments.host, arguments.port, backlog=1024)
        await site.start()
        service.resume()
        await verifier.start()
        yield runner.addresses[0][1], verifier
        await service.stop(arguments.grace, second_signal)
    finally:
        sweep.cancel()
        await runner.cleanup()
        await verifier.close()
        store.close()


def open_store(arguments: argparse.Namespace) -> Store:
    """Opens the store.  Raises OSError and sqlite3.Error, but not for an unwritable default
    folder.
    """
    folder = state_folder(arguments)
    try:
        return Store(folder, REPLIES_KEPT)
    except OSError as error:
        if arguments.state or error.filename is None:
            raise
        text = f"{error.filename}: {error.strerror}; jobs end with the service (serve --state)"
        print(f"musacoder: {text}", file=sys.stderr)
        return Store(None, REPLIES_KEPT)


def state_folder(arguments: argparse.Namespace) -> Path | None:
    """The folder of --state; by default one for each port.  None: jobs end with the service."""
    if arguments.state:
        return Path(arguments.state)
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path("~/.local/state").expanduser()
    if arguments.port == 0 or not base.is_absolute():
        return None
    return base / "musacoder" / f"serve-{arguments.port}"


async def serve(arguments: argparse.Namespace, gate: Gate) -> int:
    """Runs the service; the exit code is the verifier's own if it cannot judge."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    second_signal = asyncio.Event()

    def stop() -> None:
        if stopped.done():  # A second signal ends the grace.
            second_signal.set()
        else:
            stopped.set_result(0)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    async with running(arguments, gate, second_signal) as (port, verifier):
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


def fail(text: str) -> int:
    print(f"musacoder: {text}", file=sys.stderr)
    return BAD_INPUT


def main() -> int:
    parser = argparse.ArgumentParser(prog="musacoder serve", allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8377)
    parser.add_argument("--queue", type=int, default=4096)
    parser.add_argument("--grace", type=seconds, default=30.0)
    parser.add_argument("--state", default="")
    parser.add_argument("--token-file", default="")
    parser.add_argument("--tokens", default="")
    parser.add_argument("--allow-host", action="append", default=[])
    parser.add_argument("verifier", nargs="+", help="its command, after --")
    arguments = parser.parse_args()
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        return fail(f"serve needs aiohttp: {sys.executable} -m pip install aiohttp")
    files = (arguments.token_file, arguments.tokens)
    try:
        gate = gate_of(arguments.host, *files, arguments.allow_host)
    except ValueError as error:
        return fail(str(error))
    try:
        return asyncio.run(serve(arguments, gate))
    except sqlite3.Error as error:
        return fail(f"{state_folder(arguments)}: cannot keep jobs there: {error}")
    except OSError as error:
        if error.strerror is None:  # Store's own message is a whole sentence.
            return fail(str(error))
        if error.filename is not None:
            return fail(f"--state: {error.filename}: {error.strerror}")
        where = f"{arguments.host}:{arguments.port}"
        return fail(f"cannot listen on {where}: {error.strerror}")


if __name__ == "__main__":
    sys.exit(main())
