# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found"
"""Command line of the pool (docs/serve.md).

    python -m musacoder.ray start --measure 8 --gpus 1 -- --policy kernelbench
    python -m musacoder.ray status
    python -m musacoder.ray stream
    python -m musacoder.ray stop

`stream` speaks the line protocol of `musacoder eval --stream`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

# `musacoder serve --ray` starts this file by its path.
if __package__ in (None, ""):
    sys.path[: 0 if sys.flags.safe_path else 1] = [str(Path(__file__).resolve().parents[2])]

try:
    import ray
except ImportError:
    print(f"musacoder: needs ray: {sys.executable} -m pip install ray", file=sys.stderr)
    sys.exit(2)

from musacoder.judged import Json  # noqa: E402
from musacoder.ray.pool import Pool, connect, start, stop  # noqa: E402

OPEN_MAX = 100_000  # The limit of open requests; reading stops there.


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m musacoder.ray", allow_abbrev=False)
    parser.add_argument("verb", choices=("start", "status", "stream", "stop"))
    parser.add_argument("--address", default="auto", help="the cluster's; auto: the one here")
    parser.add_argument("--name", default="musacoder", help="the pool's name in the cluster")
    parser.add_argument("--measure", type=int, default=1, help="actors that measure")
    parser.add_argument("--prepare", type=int, default=0, help="actors that only compile")
    parser.add_argument("--cpus", type=float, default=1, help="processors of each")
    parser.add_argument("--gpus", type=float, default=0, help="GPUs of each that measures")
    parser.add_argument("--program", default=None, help="path of musacoder on the nodes")
    parser.add_argument(
        "--architecture", default="", help="for which actors without a GPU prepare: 90"
    )
    split = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:split])
    arguments.options = words[split + 1 :]
    return arguments


def pool_of(arguments: argparse.Namespace) -> Pool:
    if arguments.verb != "start":
        return connect(arguments.name)
    words = ["--architecture", arguments.architecture] if arguments.architecture else []
    return start(
        arguments.measure, arguments.prepare, cpus=arguments.cpus, gpus=arguments.gpus,
        options=arguments.options, prepare_options=[*words, *arguments.options],
        program=arguments.program, name=arguments.name,
    )  # fmt: skip


async def stream(pool: Pool) -> None:
    """Requests on standard input, replies on standard output; each is ended by its line break."""
    loop = asyncio.get_running_loop()
    work: dict[asyncio.Task[None], str] = {}
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if not line.strip():
            continue
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError
        except ValueError:
            write("", {"error": "a request is a JSON object"})
            continue
        name = str(request.pop("id", ""))
        if request.get("verb") == "cancel":
            for task in [task for task, other in work.items() if other == name]:
                task.cancel()
            continue
        task = asyncio.create_task(answer(pool, name, request))
        work[task] = name
        task.add_done_callback(lambda done: work.pop(done))
        while len(work) >= OPEN_MAX:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*work)


async def answer(pool: Pool, name: str, request: Json) -> None:
    """Replies to one request.  After a cancellation it no longer waits; the actor continues."""
    try:
        if request.get("verb") == "about":
            reply: Json = {"about": str(pool.status()[-1]["about"])}
        elif request.get("verb", "evaluate") != "evaluate":
            reply = {"error": "a pool takes the verbs evaluate, cancel and about"}
        elif "task" not in request:
            reply = {"error": 'a request needs "task"'}
        else:
            reply = await pool.reply(request)
    except asyncio.CancelledError:
        reply = {"error": "cancelled", "kind": "cancelled"}
    except Exception as error:  # One request must not end others.
        reply = {"error": str(error), "kind": "unreachable"}
    write(name, reply)


def write(name: str, reply: Json) -> None:
    print(json.dumps({**reply, "id": name}), flush=True)


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        state = row["problem"] or "takes questions"
        print(f"{row['name']}: {state} ({row['about']})")


def main() -> int:
    arguments = parse(sys.argv[1:])
    try:
        ray.init(address=arguments.address, log_to_driver=False, logging_level="error")
        if arguments.verb == "stop":
            stop(arguments.name)
            return 0
        pool = pool_of(arguments)
        if arguments.verb == "stream":
            asyncio.run(stream(pool))
        else:
            show(pool.status())
        return 0
    except ConnectionError as error:  # Unreachable, and Ray's own errors.
        print(f"musacoder: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
