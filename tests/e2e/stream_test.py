# SPDX-License-Identifier: Apache-2.0
"""`musacoder eval --stream`: a question a line, a reply a line, wrong questions included."""

from __future__ import annotations

import json
import subprocess
import unittest
from typing import Any

from program import MUSACODER, ROOT, honest, run

TASK = "reduction/row_sum"
HONEST = honest(TASK)

CPU = ("--backend", "cpu", "--jobs", "2")


def ask(*lines: str, options: tuple[str, ...] = CPU) -> list[dict[str, Any]]:
    asked = "".join(line + "\n" for line in lines)
    done = run("eval", "--stream", "--seed", "1", *options, input=asked)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Stream(unittest.TestCase):
    def test_each_line_gets_one_reply(self) -> None:
        code = (ROOT / "data/tasks" / f"{TASK}.py").read_text()
        questions: list[dict[str, Any]] = [
            {"id": "by name", "task": TASK, "answer": HONEST},
            {"id": "with code", "task": {"id": "mine", "code": code}, "answer": "I cannot."},
            {"id": "no answer", "task": TASK},
            {"id": "no task", "task": "no/such", "answer": HONEST},
            {"id": "no Model", "task": {"code": "import torch"}, "answer": HONEST},
        ]
        questions.append({"id": "half a pair", "task": TASK, "answer": "\ud800"})
        replies = ask(*map(json.dumps, questions), "", "no JSON")
        by_id = {reply["id"]: reply for reply in replies}
        self.assertEqual(len(replies), 7)
        self.assertEqual(set(by_id), {question["id"] for question in questions} | {""})
        self.assertEqual(by_id["by name"]["reward"], 1.0)
        self.assertEqual(by_id["by name"]["verdict"]["outcome"]["kind"], "pass")
        self.assertIn("correct", by_id["by name"]["feedback"])
        self.assertEqual(by_id["with code"]["reward"], -1.0)
        self.assertEqual(by_id["with code"]["verdict"]["task"], "mine")
        for wrong, words in (
            ("no answer", '"answer"'),
            ("no task", "no/such"),
            ("no Model", "no class Model"),
            ("half a pair", "lone surrogate"),
            ("", "JSON object"),
        ):
            self.assertEqual(set(by_id[wrong]), {"id", "error"})
            self.assertIn(words, by_id[wrong]["error"])

    def test_a_request_goes_in_two_halves_and_can_be_ended(self) -> None:
        call = "        return row_sum_ext"
        endless = HONEST.replace(call, "        while True: pass\n" + call)
        self.assertNotEqual(endless, HONEST)
        command = [MUSACODER, "eval", "--stream", "--backend", "cpu", "--timeout", "600"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdin and child.stdout
            replies = child.stdout

            def send(**request: Any) -> None:
                print(json.dumps(request), file=child.stdin, flush=True)

            def reply() -> Any:
                return json.loads(replies.readline())

            send(id="p", verb="prepare", task=TASK, answer=HONEST)
            prepared = reply()
            send(id="m", verb="measure", prepared=prepared["prepared"])
            self.assertEqual(reply()["reward"], 1.0)
            send(id="late", task=TASK, answer=endless, deadline_s=1)
            self.assertEqual(reply()["kind"], "late")
            send(id="c", task=TASK, answer=endless)
            send(id="c", verb="cancel")
            self.assertEqual(reply()["kind"], "cancelled")
            send(id="next", task=TASK, answer=HONEST)
            self.assertEqual(reply()["reward"], 1.0)
            child.stdin.close()
            self.assertEqual(child.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main()
