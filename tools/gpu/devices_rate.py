# SPDX-License-Identifier: Apache-2.0
"""Verdicts a minute by several GPUs of this machine, beside one of them.

    python3 tools/gpu/devices_rate.py --musacoder M [--devices 0 --devices 0,1] [--turns 2]
        [--rounds 3] [--jobs 12] [--out FILE] [OPTION OF EVAL ...]

The honest corpus is judged `--rounds` times in one run of `musacoder eval --stream` for each choice
of devices, and the choices take turns. `--jobs` are those of each device. What is compiled once is
compiled before; a rate counts from the first question to the last verdict, after a warm-up of one
question a job. Prints the rates, how the devices shared the work, the outcomes that are no pass,
and how many processes had the nodes of several devices open.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from corpus_sets import honest  # noqa: E402

NODE = re.compile(r"^/dev/nvidia\d+$")


def nodes_by_process(root: int) -> dict[int, set[str]]:
    """The nodes of devices that each descendant of a process has open."""
    parents = {}
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit():
                stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                parents[int(entry)] = int(stat[1])
        except OSError:
            continue
    found: dict[int, set[str]] = {}
    for pid in parents:
        at: int | None = pid
        while at is not None and at != root:
            at = parents.get(at)
        if at != root:
            continue
        try:
            links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        found[pid] = {link for link in links if NODE.match(link)}
    return found


def ask(pipe: IO[str], questions: list[dict[str, Any]]) -> None:
    for question in questions:
        pipe.write(json.dumps(question) + "\n")
    pipe.flush()


def run(command: list[str], rounds: int, num_warm: int) -> dict[str, Any]:
    """What one run of the verifier did, in which each answer is its own text."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    cases = honest()
    questions = [
        {
            "id": f"{case.name} {number}",
            "task": case.task,
            "answer": f"{case.response}\n# {number}\n",
        }
        for number in range(rounds)
        for case in cases
    ]
    warm = [{**one, "id": "warm", "answer": one["answer"] + "# warm\n"} for one in questions]
    warm = (warm * (1 + num_warm // len(warm)))[:num_warm]
    ask(process.stdin, warm)
    for _ in warm:
        process.stdout.readline()
    start = time.monotonic()
    writer = threading.Thread(target=ask, args=(process.stdin, questions))
    writer.start()
    replies, most = [], 0
    for count in range(len(questions)):
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the verifier ended after {count} replies: {process.wait()}")
        replies.append(json.loads(line))
        if count % 20 == 10:
            nodes = nodes_by_process(process.pid)
            most = max(most, sum(len(of_one) > 1 for of_one in nodes.values()))
    seconds = time.monotonic() - start
    writer.join()
    process.stdin.close()
    process.wait()
    verdicts = [reply["verdict"] for reply in replies if "verdict" in reply]
    kinds = Counter(verdict["outcome"]["kind"] for verdict in verdicts)
    kinds["error"] += len(replies) - len(verdicts)
    return {
        "rate": 60 * len(questions) / seconds,
        "seconds": seconds,
        "devices": dict(Counter(verdict["protocol"]["device"] for verdict in verdicts)),
        "not_passed": {kind: count for kind, count in kinds.items() if kind != "pass" and count},
        "processes_with_several_nodes": most,
        "time_us": {reply["id"]: time_of(reply) for reply in replies if "verdict" in reply},
    }


def time_of(reply: dict[str, Any]) -> float | None:
    performance = reply["verdict"]["outcome"].get("performance") or {}
    return (performance.get("time_us") or {}).get("median")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--musacoder", required=True)
    parser.add_argument("--devices", action="append", default=[])
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=12, help="for each device")
    parser.add_argument("--out", help="all figures, as JSON")
    arguments, options = parser.parse_known_args()
    choices = arguments.devices or ["0", "0,1"]
    results: dict[str, list[dict[str, Any]]] = {choice: [] for choice in choices}
    for _ in range(arguments.turns):
        for choice in choices:
            jobs = arguments.jobs * len(choice.split(","))
            command = [arguments.musacoder, "eval", "--stream", "--backend", "cuda", "--timing",
                       "quick", "--devices", choice, "--jobs", str(jobs), *options]  # fmt: skip
            result = run(command, arguments.rounds, max(jobs, len(honest())))
            results[choice].append(result)
            shown = {name: value for name, value in result.items() if name != "time_us"}
            print(choice, json.dumps(shown), flush=True)
    medians = {choice: statistics.median(r["rate"] for r in results[choice]) for choice in choices}
    for choice in choices:
        print(
            f"--devices {choice}: {medians[choice]:.1f} verdicts a minute, "
            f"{medians[choice] / medians[choices[0]]:.2f} times"
        )
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
