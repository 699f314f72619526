#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that kills and a bad server change nothing of what `musacoder bench` measures.

A stand-in for an OpenAI-compatible server answers the tasks of a KernelBench copy: with the right
answers of tests/corpus/kernelbench, with wrong ones and with junk, chosen by the task, the sample
and the turn alone. At random it answers 429, 500, a page, null or nothing, cuts the connection or
takes its time. `bench` asks it once undisturbed, and once while SIGKILL ends it at random moments
and the same command starts it again. Both must leave the same summary and the same records, and
no verdict that was stored before a kill may be reached again.

    tools/bench_kills.py $MC_KERNELBENCH --limit 60 --kills 10

It takes minutes to hours, by the number of tasks. It exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests/corpus/kernelbench"
SEEDS_OF_TURNS = 1_000_003  # src/bench/sampler.cc: the seed of a request has sample and turn.
FAULTS = ("429", "500", "page", "null", "empty", "cut", "slow")
SLOW_S = 1.0
ANSWERS = "SELECT task, sample, turn, completion FROM answer ORDER BY 1, 2, 3"
VERDICTS = "SELECT task, sample, turn, outcome, reward, verdict FROM verdict ORDER BY 1, 2, 3"
NUM_RECORDS = "SELECT (SELECT count(*) FROM answer) + (SELECT count(*) FROM verdict)"
REACHED = "SELECT task, sample, turn, seconds, verdict FROM verdict WHERE outcome != 'infra'"


# ---- The server ---------------------------------------------------------------------------------


def tasks_of(suite: Path) -> dict[str, tuple[str, str]]:
    """The number of each task, "1/19", and its right answer or "", by its program."""
    found = {}
    for path in sorted(suite.glob("level*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            right = CORPUS / f"level{row['level']}" / f"{row['problem_id']}.py"
            text = right.read_text() if right.is_file() else ""
            found[row["code"].strip()] = (f"{row['level']}/{row['problem_id']}", text)
    return found


def answer_of(number: str, right: str, sample: int, turn: int) -> str:
    """A right answer, a wrong one or junk, whatever was asked before."""
    digest = hashlib.sha256(f"{number} {sample} {turn}".encode()).digest()
    kind = digest[0] % 6
    if right and kind < 2:
        return f"Here it is:\n```python\n{right}\n```\n"
    if right and kind == 2:  # Not what the task asks for, and quick to judge.
        return f"```python\n{right.replace('return ', 'return 2 * ')}\n```"
    if right and kind == 3:
        return f"```python\n{right.replace('ModelNew', 'ModelOld')}\n```"
    junk = ["I cannot do this.", "\x00\x1b[2J \ud800", "", "```python\nclass ModelNew: pass\n```"]
    return junk[digest[1] % len(junk)] + f" {digest[2] % 4}"


class Server:
    """Answers by answer_of(), and fails at random with the chance `share`."""

    def __init__(self, tasks: dict[str, tuple[str, str]], seed: int, share: float) -> None:
        self.tasks = tasks
        self.random = random.Random(seed)
        self.share = share
        self.lock = threading.Lock()
        self.counts = dict.fromkeys(("good", *FAULTS), 0)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                request = json.loads(self.rfile.read(length))
                with contextlib.suppress(ConnectionError):  # The client was killed.
                    outer.reply(self, request)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def good(self, request: dict[str, Any]) -> str:
        prompt = request["messages"][0]["content"]
        number, right = next(found for code, found in self.tasks.items() if code in prompt)
        turn, sample = divmod(request["seed"], SEEDS_OF_TURNS)
        message = {"role": "assistant", "content": answer_of(number, right, sample, turn)}
        choice = {"message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 7}
        return json.dumps({"choices": [choice], "usage": usage})

    def reply(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        good = self.good(request)
        with self.lock:
            kind = self.random.choice(FAULTS) if self.random.random() < self.share else "good"
            self.counts[kind] += 1
        if kind == "slow":
            time.sleep(SLOW_S)
        body = {"page": "<html>", "null": "null", "empty": "", "429": "slow down", "500": "oh"}
        text = body.get(kind, good[: len(good) // 2] if kind == "cut" else good).encode()
        handler.send_response(int(kind) if kind.isdigit() else 200)
        handler.send_header("Content-Type", "text/html" if kind == "page" else "application/json")
        handler.send_header("Content-Length", str(len(text) + (100 if kind == "cut" else 0)))
        handler.end_headers()
        handler.wfile.write(text)
        handler.close_connection = True


# ---- The runs -----------------------------------------------------------------------------------


def rows(out: Path, query: str) -> list[tuple[Any, ...]]:
    path = f"file:{out}/store.sqlite?mode=rw"  # The file is not made here.
    with contextlib.closing(sqlite3.connect(path, timeout=60, uri=True)) as store:
        return store.execute(query).fetchall()


def comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A verdict without what differs by the moment: times, memory, whether a build was there."""
    verdict = json.loads(row[-1])
    verdict.pop("telemetry")
    return (*row[:-1], json.dumps(verdict, sort_keys=True))


def run_whole(command: list[str]) -> float:
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def run_with_kills(command: list[str], out: Path, kills: int, seconds: float, seed: int) -> int:
    """Kills at random moments, the first while the run starts, the others spread over as long as a
    whole run takes, from the first new record on. Returns the number of verdicts that were reached
    again.
    """
    moments = random.Random(seed)
    reached: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    num_again = 0

    def look() -> None:
        nonlocal num_again
        if not (out / "store.sqlite").exists():
            return
        for row in rows(out, REACHED):
            num_again += reached.setdefault(row[:3], row) != row

    def num_records() -> int:
        with contextlib.suppress(sqlite3.Error):  # Before the file has its tables.
            return int(rows(out, NUM_RECORDS)[0][0])
        return 0

    for kill in range(kills):
        num_before = num_records()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while kill > 0 and process.poll() is None and num_records() == num_before:
            time.sleep(0.1)
        try:
            process.wait(timeout=moments.uniform(0, 2 * seconds / kills))
            print(f"  the run ended before kill {kill + 1}", flush=True)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        look()
        num_answers = num_records() - len(reached)
        print(f"  kill {kill + 1}: {num_answers} answers and {len(reached)} verdicts", flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    look()
    return num_again


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("suite", type=Path, help="a folder of level*.jsonl")
    parser.add_argument("--limit", type=int, default=0, help="only the first tasks (0: all)")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--faults", type=float, default=0.25, help="share of bad responses")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    program = os.environ.get("MUSACODER", str(ROOT / "build/dev/bin/musacoder"))
    server = Server(tasks_of(arguments.suite), arguments.seed, arguments.faults)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed, killed = Path(folder) / "undisturbed", Path(folder) / "killed"

        def command(out: Path) -> list[str]:
            return [program, "bench", "--endpoint", server.url, "--model-name", "stand-in",
                    "--suite", str(arguments.suite), "--out", str(out), "--backend", "cpu",
                    "--samples", str(arguments.samples), "--turns", str(arguments.turns),
                    "--limit", str(arguments.limit), "--jobs", str(arguments.jobs),
                    "--concurrency", "8", "--retries", "12", "--seed", "1"]  # fmt: skip

        seconds = run_whole(command(undisturbed))
        num_answers, num_verdicts = (len(rows(undisturbed, query)) for query in (ANSWERS, VERDICTS))
        print(f"undisturbed: {num_answers} answers, {num_verdicts} verdicts, {seconds:.0f} s",
              flush=True)  # fmt: skip
        num_again = run_with_kills(
            command(killed), killed, arguments.kills, seconds, arguments.seed
        )
        print(f"responses of the server: {server.counts}")
        verdicts = [list(map(comparable, rows(out, VERDICTS))) for out in (undisturbed, killed)]
        differs = {
            "the summary": (undisturbed / "summary.json").read_bytes()
            != (killed / "summary.json").read_bytes(),
            "answers": rows(undisturbed, ANSWERS) != rows(killed, ANSWERS),
            "verdicts": verdicts[0] != verdicts[1],
            "answers without a verdict": num_answers != num_verdicts,
            "verdicts that were reached again": num_again > 0,
        }
        summary = json.loads((undisturbed / "summary.json").read_text())
        print(f"outcomes: {summary['outcomes']}, missing: {summary['missing']}")
        for what, is_so in differs.items():
            print(f"{what}: {'DIFFERENT' if is_so else 'as it should be'}")
        if any(differs.values()):
            kept = Path(tempfile.mkdtemp(prefix="bench-kills-"))
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            print(f"both folders are kept in {kept}")
    return int(any(differs.values()))


if __name__ == "__main__":
    sys.exit(main())
