# SPDX-License-Identifier: Apache-2.0
"""Two hundred failures of every kind (of them $MC_CORPUS_SHARE), with a correct candidate after
each few of them: every verdict is the right one, and no process, file or descriptor is left.
"""

from __future__ import annotations

import json
import os
import unittest
from pathlib import Path

from program import MUSACODER, InFolder, honest, run

TASK = "reduction/row_sum"
NUM_FAILURES = round(200 * float(os.environ.get("MC_CORPUS_SHARE", "1")))
HONEST_EVERY = 10

# The first statement of the honest candidate's forward, and the outcome.
FAILURES = {
    "segfault": ("import ctypes; ctypes.string_at(0)", "runtime"),
    "abort": ("import os; os.abort()", "runtime"),
    "exit": ("import os; os._exit(0)", "runtime"),
    "kill": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "runtime"),
    "exception": ("raise ValueError('no')", "runtime"),
    "interrupt": ("raise KeyboardInterrupt", "runtime"),
    "recursion": ("f = lambda g: g(g); f(f)", "runtime"),
    "hang": ("while True: pass", "timeout"),
    "sleep": ("import time; time.sleep(3600)", "timeout"),
    "memory": ("b = [bytearray(1 << 30) for _ in range(64)]", "oom"),
    "flood": ("[print('x' * 100000) for _ in range(200)]; raise ValueError", "runtime"),
    "files": ("open('/tmp/left', 'w').write('x'); raise ValueError", "runtime"),
    "fork": ("import os; [os.fork() for _ in range(1000)]", "runtime"),
    "wrong": ("return torch.zeros(1, device='cuda')", "wrong"),
}


def with_first_statement(statement: str) -> str:
    lines = honest(TASK).splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.lstrip().startswith("def forward"))
    indent = " " * (len(lines[at]) - len(lines[at].lstrip()) + 4)
    return "".join([*lines[: at + 1], f"{indent}{statement}\n", *lines[at + 1 :]])


def processes() -> set[str]:
    """The command lines of this program's zygotes and of their children."""
    prefix = Path(MUSACODER).resolve().parents[1]
    zygote = f"{prefix}/share/musacoder/python/harness/worker/zygote.py"
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.add(f"{entry.parent.name} {entry.read_bytes().decode(errors='replace')}")
        except OSError:
            continue
    return {line for line in found if zygote in line}


def temporary_files() -> set[str]:
    return {
        str(path)
        for folder in ("/tmp", "/dev/shm")
        for path in Path(folder).iterdir()
        if path.name.startswith(("mc", "musacoder", "left"))
    }


class Endurance(InFolder):
    def test_failures_leave_nothing_and_touch_nobody(self) -> None:
        lines, expected = [], []
        for i in range(NUM_FAILURES):
            name = list(FAILURES)[i % len(FAILURES)]
            statement, outcome = FAILURES[name]
            lines.append({"sample": f"{i}-{name}", "response": with_first_statement(statement)})
            expected.append(outcome)
            if i % HONEST_EVERY == 0:
                lines.append({"sample": f"{i}-honest", "response": honest(TASK)})
                expected.append("pass")
        before = processes(), temporary_files()
        outcomes = self.judge(lines)
        self.assertEqual(
            [(line["sample"], outcome) for line, outcome in zip(lines, outcomes, strict=True)],
            [(line["sample"], outcome) for line, outcome in zip(lines, expected, strict=True)],
        )
        self.assertEqual(processes() - before[0], set())
        self.assertEqual(temporary_files() - before[1], set())

    def judge(self, lines: list[dict[str, str]]) -> list[str]:
        text = "".join(json.dumps({"task": TASK, **x}) + "\n" for x in lines)
        answers = self.write("answers.jsonl", text)
        done = run("eval", "-c", answers, "-j", 2, "--json", "--seed", 1, "--timeout", 2,
                   "--memory", "1GiB", "--no-static-rules")  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        read = [json.loads(line) for line in done.stdout.splitlines()]
        return [result["verdict"]["outcome"]["kind"] for result in read]


if __name__ == "__main__":
    unittest.main()
