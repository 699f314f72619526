#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found"
"""musacoder.ray on a cluster of three simulated nodes of this machine (docs/ray.md).

    python tools/ray_try.py rate               verdicts a second and added latency, by a verifier
                                               that passes everything at once
    python tools/ray_try.py kills --times 100  SIGKILL of actors, children and nodes under load
    python tools/ray_try.py real --musacoder build/dev/bin/musacoder
                                               real verdicts of the CPU backend, beside one local
                                               `eval --stream` with as many jobs

Needs ray, and for `real` the project's set-up.  Run it with python/ on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
# The path of a socket has at most 107 characters.
os.environ.setdefault("RAY_TMPDIR", tempfile.mkdtemp(prefix="r", dir="/tmp"))
os.environ["PYTHONPATH"] = str(ROOT / "python")

import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import musacoder.ray  # noqa: E402
from musacoder.ray.pool import Pool  # noqa: E402

NODES = 3
TASKS = ("softmax/softmax_rows", "reduction/row_sum")
Question = tuple[str, str]


@contextmanager
def cluster_of(program: str, options: list[str]) -> Iterator[tuple[Any, Pool]]:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(NODES):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    try:
        yield cluster, musacoder.ray.start(NODES, options=options, program=program)
    finally:
        ray.shutdown()
        cluster.shutdown()


def noop_program(folder: Path) -> str:
    """A verifier whose verdict names the question, so that a mixed-up one shows."""
    script = folder / "noop"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    verdict = {'task': q.get('answer'), 'outcome': {'kind': 'pass'}}\n"
        "    r = {'reward': 1.0, 'seconds': 0, 'feedback': '', 'verdict': verdict}\n"
        "    if q.get('verb') == 'about': r = {'about': 'noop'}\n"
        "    time.sleep(float(q.get('options', {}).get('sleep', 0)))\n"
        "    print(json.dumps({**r, 'id': q['id']}), flush=True)\n"
    )
    script.chmod(0o755)
    return str(script)


def numbered(count: int, first: int = 0) -> list[Question]:
    return [("class Model: pass\n", f"answer {i}") for i in range(first, first + count)]


def rate(pool: Pool) -> None:
    for i in range(3):
        asked = numbered(3000, 10_000 * i)
        start = time.monotonic()
        pool.evaluate_many(asked)
        print(f"{len(asked) / (time.monotonic() - start):.0f} verdicts a second")

    async def latencies() -> list[float]:
        found = []
        for task, answer in numbered(500, 90_000):
            start = time.perf_counter()
            await pool.verdict(task, answer)
            found.append(1e3 * (time.perf_counter() - start))
        return found

    found = asyncio.run(latencies())
    p99 = statistics.quantiles(found, n=100)[98]
    print(f"one at a time: median {statistics.median(found):.1f} ms, p99 {p99:.1f} ms")


def children_of(program: str) -> list[int]:
    done = subprocess.run(["pgrep", "-f", program], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


class Killer:
    """Kills one thing a time, and measures how long the pool is without a verdict after it."""

    def __init__(self, cluster: Any, program: str, seed: int) -> None:
        self._cluster, self._program = cluster, program
        self._random = random.Random(seed)
        self._nodes: list[Any] = list(cluster.worker_nodes)
        self.counts: dict[str, int] = {}

    def pause(self) -> float:
        return self._random.uniform(0.5, 1.5)

    def kill_one(self) -> None:
        kind = self._random.choices(("actor", "child", "node"), (5, 5, 1))[0]
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind == "node":
            # A dead node stays in the list of the simulated cluster.
            node = self._nodes.pop(self._random.randrange(len(self._nodes)))
            node.kill_all_processes(check_alive=False, allow_graceful=False)
            self._nodes.append(self._cluster.add_node(num_cpus=1))
            return
        pids = self.pids(kind)
        if pids:
            os.kill(self._random.choice(pids), signal.SIGKILL)

    def pids(self, kind: str) -> list[int]:
        if kind == "child":
            return children_of(self._program)
        return children_of("ray::Verifier")


def kills(cluster: Any, pool: Pool, program: str, times: int, seed: int) -> None:
    killer = Killer(cluster, program, seed)
    done: list[tuple[float, int, str]] = []
    stop = threading.Event()

    def ask() -> None:
        number = 0
        while not stop.is_set():
            asked = numbered(200, number)
            number += len(asked)
            for (_, answer), judged in zip(asked, pool.evaluate_many(asked, {"sleep": 0.02})):
                assert judged.verdict["task"] == answer, (judged, answer)
            done.append((time.monotonic(), len(asked), ""))

    thread = threading.Thread(target=ask)
    start = time.monotonic()
    thread.start()
    for _ in range(times):
        time.sleep(killer.pause())
        killer.kill_one()
    stop.set()
    thread.join()
    longest = max((b[0] - a[0] for a, b in zip(done, done[1:])), default=0)
    total = sum(count for _, count, _ in done)
    print(f"{times} kills {killer.counts} in {time.monotonic() - start:.0f} s")
    print(f"{total} questions, each with its verdict; longest round of 200: {longest:.1f} s")


def real(pool: Pool, program: str, rounds: int) -> None:
    """The same answers by the pool and by one local program with as many jobs."""
    asked = []
    for i in range(rounds):
        for task in TASKS:
            answer = (ROOT / "tests/corpus/honest" / f"{task}.py").read_text()
            asked.append((task, f"{answer}\n# {i}\n"))
    pool.evaluate_many(asked[: 2 * NODES])
    start = time.monotonic()
    judged = pool.evaluate_many(asked)
    by_ray = time.monotonic() - start
    assert all(one.passed for one in judged), {one.outcome for one in judged}
    local = musacoder.Program(program, ["--backend", "cpu", "--jobs", str(NODES)])
    local.evaluate(*asked[0])
    start = time.monotonic()
    replies = [local.ask({"task": task, "answer": answer}) for task, answer in asked]
    assert all(reply.result()["reward"] == 1.0 for reply in replies)
    by_one = time.monotonic() - start
    local.close()
    print(f"{len(asked)} verdicts: {by_ray:.1f} s by Ray, {by_one:.1f} s by one program "
          f"({100 * by_one / by_ray:.0f} %)")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("rate", "kills", "real"))
    parser.add_argument("--musacoder", default=str(ROOT / "build/dev/bin/musacoder"))
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        is_real = arguments.what == "real"
        program = arguments.musacoder if is_real else noop_program(Path(folder))
        options = ["--backend", "cpu"] if is_real else []
        with cluster_of(str(Path(program).resolve()), options) as (cluster, pool):
            if arguments.what == "rate":
                rate(pool)
            elif is_real:
                real(pool, program, arguments.rounds)
            else:
                kills(cluster, pool, program, arguments.times, arguments.seed)
            print(json.dumps(pool.status()), "load", os.getloadavg())


if __name__ == "__main__":
    main()
