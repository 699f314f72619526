# SPDX-License-Identifier: Apache-2.0
"""`musacoder bench` as a user sees it: sources of answers, figures, taking up what a kill left.

Runs the program named by $MUSACODER; no GPU and no network but loopback are needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
HONEST = ROOT / "tests/corpus/honest"
MUSACODER = os.environ.get("MUSACODER", str(ROOT / "build/dev/bin/musacoder"))
BAD_INPUT = 2
MACHINE_FAILED = 1
TASKS = ["reduction/row_sum", "softmax/softmax_rows"]


class Bench(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out"
        self.suite = self.folder / "suite"
        for number, name in enumerate(TASKS, 1):
            target = self.suite / "level1" / f"{number}_{Path(name).name}.py"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "tasks" / f"{name}.py", target)

    def command(self, *arguments: object) -> list[str]:
        given = map(str, arguments)
        return [MUSACODER, "bench", "--suite", str(self.suite), "--out", str(self.out),
                "--backend", "cpu", *given]  # fmt: skip

    def run_bench(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = self.command(*arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)

    def measure(self, *arguments: object) -> dict[str, Any]:
        done = self.run_bench(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        loaded: dict[str, Any] = json.loads((self.out / "summary.json").read_text())
        return loaded

    def settings(self) -> dict[str, Any]:
        """Of the only run of the store."""
        with contextlib.closing(sqlite3.connect(self.out / "store.sqlite")) as store:
            ((text,),) = store.execute("SELECT settings FROM run")
        loaded: dict[str, Any] = json.loads(text)
        return loaded

    def refuse(self, words: str, code: int, *arguments: object) -> None:
        """The program says `words` in one line and exits with `code`."""
        done = self.run_bench(*arguments)
        errors = [line for line in done.stderr.splitlines() if "zygote" not in line]
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn(words, errors[0])
        self.assertFalse((self.out / "summary.json").exists())

    def answers(self) -> Path:
        """Of both tasks a right one, and of the first also a wrong one."""
        rows = [{"id": f"kernelbench:1/{number}", "sample": 0,
                 "completion": f"```python\n{(HONEST / f'{name}.py').read_text()}```"}
                for number, name in enumerate(TASKS, 1)]  # fmt: skip
        rows.append({"id": "kernelbench:1/1", "sample": 1, "completion": "I cannot do this."})
        path = self.folder / "answers.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def lines(self, name: str) -> list[str]:
        return (self.out / name).read_text().splitlines()


class Stored(Bench):
    def test_figures_of_stored_answers_and_what_a_cut_line_costs(self) -> None:
        answers = self.answers()
        summary = self.measure("--answers", answers)
        figures = summary["groups"]["all"]
        self.assertEqual(summary["outcomes"], {"extraction": 1, "pass": 2})
        self.assertEqual(figures["pass_at"]["1"]["value"], 0.75)
        at_2 = figures["pass_at"]["2"]
        self.assertEqual((at_2["value"], at_2["high"], at_2["tasks"]), (1, 1, 1))
        self.assertIn("level 1", summary["groups"])
        before = self.lines("verdicts.jsonl")
        self.assertEqual(len(before), 3)
        text = (self.out / "verdicts.jsonl").read_bytes()
        (self.out / "verdicts.jsonl").write_bytes(text[:-20])
        self.assertEqual(self.measure("--answers", answers), summary)
        after = self.lines("verdicts.jsonl")
        self.assertEqual(after[:2], before[:2], "what was there was judged again")
        self.assertEqual(len(after), 3)

    def test_the_same_text_for_the_same_task_is_judged_once(self) -> None:
        said = {"id": "kernelbench:1/1", "completion": "I cannot do this."}
        rows = [{**said, "sample": 0}, {**said, "sample": 1}, {**said, "id": "kernelbench:1/2"}]
        path = self.folder / "answers.jsonl"
        path.write_text("".join(json.dumps({"sample": 0, **row}) + "\n" for row in rows))
        summary = self.measure("--answers", path)
        self.assertEqual(summary["outcomes"], {"extraction": 3})
        verdicts = [json.loads(line) for line in self.lines("verdicts.jsonl")]
        names = {f"{row['id']}#{row['sample']}": row["seconds"] for row in verdicts}
        self.assertEqual({row["verdict"]["candidate"] for row in verdicts}, set(names))
        self.assertEqual(names["kernelbench:1/1#0"], names["kernelbench:1/1#1"])

    def test_a_kill_loses_nothing_that_was_judged(self) -> None:
        answers = self.answers()
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            command = self.command("--answers", answers, "--jobs", 1)
            process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
            while process.poll() is None:
                path = self.out / "verdicts.jsonl"
                if path.exists() and path.stat().st_size > 0:
                    break
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
        first = self.lines("verdicts.jsonl")[0]
        summary = self.measure("--answers", answers)
        self.assertEqual(summary["outcomes"], {"extraction": 1, "pass": 2})
        self.assertEqual(self.lines("verdicts.jsonl")[0], first)
        self.assertEqual(len(self.lines("verdicts.jsonl")), 3)

    def test_a_run_folder_of_kernelbench(self) -> None:
        runs = self.folder / "runs"
        runs.mkdir()
        name = "level_1_problem_1_sample_0_kernel.py"
        shutil.copy(HONEST / f"{TASKS[0]}.py", runs / name)
        summary = self.measure("--runs", runs)
        self.assertEqual(summary["outcomes"], {"pass": 1})
        self.assertEqual(summary["missing"], 1, "the task that has no answer is not told")
        self.assertEqual(summary["groups"]["all"]["tasks"], 1)

    def test_a_part_of_the_suite_under_other_settings(self) -> None:
        given = ("--answers", self.answers(), "--level", 2)
        self.refuse("no task of that --level", BAD_INPUT, *given)
        given = ("--answers", self.answers(), "--problem", "1/2")
        summary = self.measure(*given, "--trials", 2, "--no-shapes")
        self.assertEqual(summary["outcomes"], {"pass": 1})
        settings = self.settings()
        self.assertEqual(settings["options"]["--trials"], ["2"])
        trials = json.loads(self.lines("verdicts.jsonl")[-1])["verdict"]["outcome"]["trials"]
        self.assertEqual(len(trials), 2)
        shutil.move(self.out / "summary.json", self.folder)
        self.refuse("is there with other settings", BAD_INPUT, *given, "--trials", 3)

    def test_what_users_get_wrong(self) -> None:
        answers = self.answers()
        self.refuse("one of --model, --endpoint, --answers and --runs", BAD_INPUT)
        self.refuse("is no model's folder", BAD_INPUT, "--model", self.suite)
        self.refuse("nowhere.jsonl", BAD_INPUT, "--answers", self.folder / "nowhere.jsonl")
        answers.write_text('{"id": "kernelbench:9/9", "sample": 0, "completion": "x"}\n')
        self.refuse("the suite has no task kernelbench:9/9", BAD_INPUT, "--answers", answers)
        self.refuse("--model-name", BAD_INPUT, "--endpoint", "http://127.0.0.1:1/v1")


Reply = Callable[[int, dict[str, Any]], tuple[int, str, str]]  # Status, content type, body.


class Server:
    """An HTTP server on loopback that answers POSTs by a function of their number and body."""

    def __init__(self, reply: Reply) -> None:
        self.num = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                outer.num += 1
                status, kind, body = reply(outer.num, json.loads(self.rfile.read(length)))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()


def completion(text: str) -> tuple[int, str, str]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"choices": [choice], "usage": {"completion_tokens": 5}}
    return 200, "application/json", json.dumps(body)


# The words of a reasoning model whose limit of tokens was reached as it had nearly ended.
REASONING = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Thus:\n```python\n"
                + (HONEST / f"{TASKS[1]}.py").read_text()
                + "```",
            },
            "finish_reason": "length",
        }
    ]
}


class Endpoint(Bench):
    def serve(self, reply: Reply) -> tuple[object, ...]:
        server = Server(reply)
        self.addCleanup(server.stop)
        return "--endpoint", server.url, "--model-name", "m", "--concurrency", 1

    def test_a_model_behind_one_that_is_busy_at_first(self) -> None:
        def reply(number: int, request: dict[str, Any]) -> tuple[int, str, str]:
            if number == 1:
                return 503, "text/plain", "busy"
            prompt = request["messages"][-1]["content"]
            self.assertIn("class Model", prompt)
            if "softmax" in prompt:
                body = '{"error": {"message": "the prompt is too long"}}'
                return 400, "application/json", body
            return completion((HONEST / f"{TASKS[0]}.py").read_text())

        summary = self.measure(*self.serve(reply))
        self.assertEqual(summary["outcomes"], {"pass": 1})
        self.assertEqual(summary["missing"], 1, "a prompt that was refused is no failure")
        answer = json.loads(self.lines("answers.jsonl")[0])
        self.assertEqual((answer["id"], answer["num_tokens"]), ("kernelbench:1/1", 5))

    def test_a_prompt_that_the_server_fails_at_is_one_answer_less(self) -> None:
        def reply(number: int, request: dict[str, Any]) -> tuple[int, str, str]:
            if "softmax" in request["messages"][-1]["content"]:
                return 200, "application/json", json.dumps(REASONING)
            return 500, "text/plain", "out of memory"

        given = (*self.serve(reply), "--retries", 1)
        done = self.run_bench(*given)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 without an answer", done.stdout)
        self.assertIn("1 times", done.stdout)
        self.assertIn("answers 500: out of memory", done.stdout)
        self.assertIn("1 cut off", done.stdout)
        summary = json.loads((self.out / "summary.json").read_text())
        self.assertEqual((summary["missing"], summary["cut"]), (1, 1))
        self.assertEqual(summary["outcomes"], {"pass": 1})

    def test_one_that_fails_at_all_prompts(self) -> None:
        given = self.serve(lambda number, request: (500, "text/plain", "broken"))
        self.refuse("no answer to any task", BAD_INPUT, *given, "--retries", 0)

    def test_one_that_answers_html(self) -> None:
        given = self.serve(lambda number, request: (200, "text/html", "<html>welcome</html>"))
        self.refuse("answers text/html", BAD_INPUT, *given)

    def test_one_that_is_down(self) -> None:
        given = ("--endpoint", "http://127.0.0.1:9/v1", "--model-name", "m", "--retries", 0)
        self.refuse("no answer from http://127.0.0.1:9/v1", MACHINE_FAILED, *given)


if __name__ == "__main__":
    unittest.main()
