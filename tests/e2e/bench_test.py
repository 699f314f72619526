# SPDX-License-Identifier: Apache-2.0
"""`musacoder bench` as a user sees it: sources of answers, figures, taking up what a kill left."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import pty
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
from program import BAD_INPUT, CUT, HONEST, MACHINE_FAILED, MUSACODER, ROOT, UNANSWERED
from program import InFolder, Reply, Server, completion, errors_of, honest, run

LEARN = Path(MUSACODER).parent / "musacoder-learn"
TASKS = ["reduction/row_sum", "softmax/softmax_rows"]


class Bench(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "out"
        self.suite = self.folder / "suite"
        for number, name in enumerate(TASKS, 1):
            target = self.suite / "level1" / f"{number}_{Path(name).name}.py"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "data/tasks" / f"{name}.py", target)

    def command(self, *arguments: object) -> list[str]:
        given = map(str, arguments)
        return [MUSACODER, "bench", "--suite", str(self.suite), "--out", str(self.out),
                "--backend", "cpu", *given]  # fmt: skip

    def run_bench(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return run(*self.command(*arguments)[1:])

    def measure(self, *arguments: object, code: int = 0) -> dict[str, Any]:
        done = self.run_bench(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        loaded: dict[str, Any] = json.loads((self.out / "summary.json").read_text())
        return loaded

    def settings(self) -> dict[str, Any]:
        """The settings of the only run in the store."""
        ((text,),) = self.rows("SELECT settings FROM run")
        loaded: dict[str, Any] = json.loads(text)
        return loaded

    def refuse(self, words: str, code: int, *arguments: object) -> None:
        """The program says `words` in one line and exits with `code`."""
        done = self.run_bench(*arguments)
        errors = errors_of(done.stderr)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn(words, errors[0])
        self.assertFalse((self.out / "summary.json").exists())

    def answers(self) -> Path:
        """A right answer to both tasks, and a wrong one to the first."""
        rows = [{"id": f"kernelbench:1/{number}", "sample": 0,
                 "completion": f"```python\n{honest(name)}```"}
                for number, name in enumerate(TASKS, 1)]  # fmt: skip
        rows.append({"id": "kernelbench:1/1", "sample": 1, "completion": "I cannot do this."})
        path = self.folder / "answers.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def lines(self, name: str) -> list[str]:
        return (self.out / name).read_text().splitlines()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        path = f"file:{self.out}/store.sqlite?mode=rw"  # The file is not made here.
        with contextlib.closing(sqlite3.connect(path, timeout=60, uri=True)) as store:
            return store.execute(query).fetchall()


class Prompts(InFolder):
    def test_the_example_of_the_templates_is_right_in_both_dialects(self) -> None:
        prompts = ROOT / "data/prompts"
        run("musify", prompts / "example.py", "--out", self.folder)
        for dialect, place in (("cuda", prompts), ("musa", self.folder)):
            done = run("eval", "--task", prompts / "example_task.py", "-c", place / "example.py",
                       "--dialect", dialect, "--backend", "cpu", "--exit-code")  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Stored(Bench):
    def test_figures_of_stored_answers_and_files_that_are_written_anew(self) -> None:
        answers = self.answers()
        summary = self.check_events(self.run_bench("--answers", answers, "--json"), 3)
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
        again = self.run_bench("--answers", answers, "--json")
        self.assertEqual(self.check_events(again, 0), summary)
        self.assertEqual(self.lines("verdicts.jsonl"), before, "what was there was judged again")
        self.assertEqual(json.loads((self.out / "summary.json").read_text()), summary)
        failed = self.run_bench("--answers", self.folder / "nowhere.jsonl", "--json")
        self.assertEqual(failed.returncode, BAD_INPUT)
        (end,) = map(json.loads, failed.stdout.splitlines())
        self.assertEqual((end["event"], end["run"]), ("end", "nowhere"))
        self.assertIn("nowhere.jsonl", end["error"])

    def check_events(self, done: subprocess.CompletedProcess[str], num: int) -> dict[str, Any]:
        """Standard output has `num` verdicts as events; returns the summary at its end."""
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Pass@1", done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({(event["version"], event["run"]) for event in events}, {(1, "answers")})
        samples = [event for event in events if event["event"] == "sample"]
        progress = [event for event in events if event["event"] == "progress"]
        self.assertEqual([event["event"] for event in events].index("end"), len(events) - 1)
        self.assertEqual(len(samples), num)
        summary: dict[str, Any] = events[-1]["summary"]
        if num:
            self.assertEqual(
                sorted(tuple(one[name] for name in ("task", "sample", "outcome", "reward"))
                       for one in samples),
                [("kernelbench:1/1", 0, "pass", 1), ("kernelbench:1/1", 1, "extraction", -1),
                 ("kernelbench:1/2", 0, "pass", 1)],
            )  # fmt: skip
            last = progress[-1]
            self.assertEqual((progress[0]["judged"], progress[0]["left_s"]), (0, None))
            self.assertEqual((last["judged"], last["left_s"], last["measuring"]), (num, 0, 0))
            self.assertEqual(last["pass_rate"], summary["groups"]["all"]["average"])
        return summary

    def test_the_same_text_for_the_same_task_is_judged_once(self) -> None:
        row: dict[str, object] = {"id": "kernelbench:1/1", "completion": "I cannot do this."}
        rows = [{**row, "sample": 0}, {**row, "sample": 1}, {**row, "id": "kernelbench:1/2"}]
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
                with contextlib.suppress(sqlite3.Error):  # Before the first table is there.
                    if self.rows("SELECT * FROM verdict"):
                        break
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            self.assertEqual(process.wait(), -signal.SIGKILL, "it ended before the kill")
        before = self.rows("SELECT * FROM verdict")
        self.assertTrue(before)
        self.assertFalse((self.out / "summary.json").exists())
        document = self.folder / "document.json"
        self.assertEqual(run("report", self.out, "--json", document).returncode, 0)
        (stopped,) = json.loads(document.read_text())["runs"]
        self.assertRegex(stopped["unfinished"], "unfinished: [12] of 3 samples have their verdict")
        summary = self.measure("--answers", answers)
        self.assertEqual(summary["outcomes"], {"extraction": 1, "pass": 2})
        after = self.rows("SELECT * FROM verdict")
        self.assertEqual(len(after), 3)
        self.assertLessEqual(set(before), set(after), "what was judged was judged again")

    def test_a_run_folder_of_kernelbench(self) -> None:
        runs = self.folder / "runs"
        runs.mkdir()
        name = "level_1_problem_1_sample_0_kernel.py"
        shutil.copy(HONEST / f"{TASKS[0]}.py", runs / name)
        summary = self.measure("--runs", runs)
        self.assertEqual(summary["outcomes"], {"pass": 1})
        self.assertEqual(summary["missing"], 1, "the task that has no answer is not told")
        self.assertEqual((summary["wanted"], summary["judged"]), (2, 1))
        figures = summary["groups"]["all"]
        self.assertEqual((figures["tasks"], figures["missing"]), (2, 1))
        self.assertEqual(figures["pass_at"]["1"]["value"], 0.5, "it counts as failed")
        done = self.run_bench("--runs", runs, "--missing", "left-out")
        self.assertIn("1 of 2 samples have their verdict", done.stdout)
        figures = json.loads((self.out / "summary.json").read_text())["groups"]["all"]
        self.assertEqual((figures["tasks"], figures["pass_at"]["1"]["value"]), (1, 1))

    def test_a_part_of_the_suite_under_other_settings(self) -> None:
        given: tuple[object, ...] = ("--answers", self.answers(), "--level", 2)
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
        answers = self.answers()
        given = ("--answers", answers)
        self.refuse("--extra-body: expected a JSON object", BAD_INPUT, *given, "--extra-body", "[]")
        self.refuse("--extra-body: expected a JSON object", BAD_INPUT, *given, "--extra-body", "{")
        self.refuse("--header: expected", BAD_INPUT, *given, "--header", "no colon")
        self.refuse("--header: expected", BAD_INPUT, *given, "--header", "a: b\nc: d")
        self.refuse("nan", BAD_INPUT, *given, "--prices", "nan,1")
        self.refuse("--turns needs --model", BAD_INPUT, *given, "--turns", 2)
        template = self.folder / "template.txt"
        self.refuse("template.txt", BAD_INPUT, *given, "--prompt-template", template)
        template.write_text("write a kernel for {{platform}}")
        self.refuse("none of card, hardware", BAD_INPUT, *given, "--prompt-template", "two-shot")
        self.refuse("has no {{task}}", BAD_INPUT, *given, "--prompt-template", template)
        template.write_text("{{task}} {{gpu}}")
        self.refuse("{{gpu}} is not known", BAD_INPUT, *given, "--prompt-template", template)
        self.refuse("no store", BAD_INPUT, *given, "--against", self.folder)
        self.suite = Path("tasks")
        given = ("--answers", ROOT / "examples/answers.jsonl")
        self.refuse("its families are broadcast, ", BAD_INPUT, *given, "--family", "nonsense")
        self.suite = Path("kernelbench")
        self.refuse("set MC_KERNELBENCH", BAD_INPUT, *given)

    def test_the_same_answers_under_another_protocol_and_a_report_of_both(self) -> None:
        answers = self.answers()
        given = ("--answers", answers, "--also", "policy=kernelbench,trials=2", "--no-shapes")
        summary = self.measure(*given)
        self.assertEqual(summary["outcomes"], {"extraction": 1, "pass": 2})
        also = "answers (policy=kernelbench,trials=2)"
        runs = self.rows("SELECT name, settings FROM run ORDER BY id")
        self.assertEqual([name for name, _ in runs], ["answers", also])
        settings = json.loads(runs[1][1])
        self.assertEqual(settings["policy"], "kernelbench")
        self.assertEqual(set(settings["options"]), {"--no-shapes", "--trials"})
        policies = {json.loads(line)["verdict"]["protocol"]["policy"].split("/")[0]
                    for line in self.lines("verdicts.jsonl")}  # fmt: skip
        self.assertEqual(policies, {"musacoder"}, "the folder's files are of the other run")
        verdicts = self.rows("SELECT * FROM verdict ORDER BY run, task, sample, turn")
        self.assertEqual(len(verdicts), 6)
        self.measure(*given, "--against", f"{self.out}#{also}")
        self.assertEqual(self.rows("SELECT * FROM verdict ORDER BY run, task, sample, turn"),
                         verdicts, "what was judged was judged again")  # fmt: skip
        self.check_report(also)
        answers.write_text(answers.read_text().replace("I cannot", "I could not"))
        (self.out / "summary.json").unlink()
        self.refuse("has another answer kernelbench:1/1#1", BAD_INPUT, *given)

    def report(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return run("report", *arguments)

    def check_report(self, also: str) -> None:
        page, table = self.folder / "page.html", self.folder / "table.md"
        rows, document = self.folder / "rows.csv", self.folder / "document.json"
        done = self.report(self.out, "--out", page, "--markdown", table, "--csv", rows,
                           "--json", document, "--kernelbench", self.folder / "runs")  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = json.loads((self.folder / "runs/answers_level1/eval_results.json").read_text())
        self.assertEqual(
            [[one["correctness"] for one in theirs[name]] for name in ("1", "2")],
            [[True, False], [True]],
        )
        self.assertIn("class ModelNew", page.read_text())
        self.assertIn("Pass@1", table.read_text())
        with open(rows, encoding="utf-8", newline="") as stream:
            self.assertEqual(len(list(csv.DictReader(stream))), 6)
        loaded = json.loads(document.read_text())
        jsonschema.validate(loaded, json.loads((ROOT / "docs/report.schema.json").read_text()))
        self.assertEqual([run["name"] for run in loaded["runs"]], ["answers", also])
        self.assertEqual([run["missing"] for run in loaded["runs"]], [0, 0])
        self.assertEqual(len(loaded["tasks"]), 2)
        self.assertEqual(loaded["paired"][0]["tasks"], 2)
        done = self.report(self.out / "store.sqlite", "--run", also, "--json", document)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(document.read_text())["runs"]), 1)
        wrong: list[tuple[str, list[object]]] = [
            ("no run nobody", [self.out, "--run", "answers", "--run", "nobody", "--json", rows]),
            ("no store", [self.folder, "--json", rows]),
            ("no store", [self.folder / "nowhere", "--json", rows]),
            ("give --out PAGE.html", [self.out]),
            ("is not there", [self.out, "--out", self.folder / "nowhere/page.html"]),
        ]
        for words, arguments in wrong:
            done = self.report(*arguments)
            self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)


# The words of a reasoning model whose limit of tokens was reached as it had nearly ended.
REASONING = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Thus:\n```python\n" + honest(TASKS[1]) + "```",
            },
            "finish_reason": "length",
        }
    ]
}


SEEDS_OF_TURNS = 1_000_003  # src/bench/sampler.cc: the seed of a request has sample and turn.


def scripted(request: dict[str, Any]) -> str:
    """An answer that hangs on the task, the sample and the turn alone."""
    prompt = request["messages"][0]["content"]
    number = 1 if "softmax" in prompt else 0
    turn, sample = divmod(request["seed"], SEEDS_OF_TURNS)
    right = honest(TASKS[number])
    kind = hashlib.sha256(f"{number} {sample} {turn}".encode()).digest()[0] % 3
    if kind == 0:
        return f"```python\n{right}\n```"
    return right.replace("ModelNew", "ModelOld") if kind == 1 else f"no idea {sample}"


class Nasty:
    """Answers as scripted() does, and at random in one of the ways in which servers fail."""

    def __init__(self, seed: int, share: float) -> None:
        self.random = random.Random(seed)
        self.share = share
        self.lock = threading.Lock()
        self.failures: set[str] = set()

    def __call__(self, number: int, request: dict[str, Any]) -> tuple[int, str, str]:
        good = completion(scripted(request))
        bad: dict[str, tuple[int, str, str]] = {
            "busy": (429, "text/plain", "slow down"),
            "broken": (500, "text/html", "<h1>error</h1>"),
            "html": (200, "text/html", "<html>a proxy's page</html>"),
            "null": (200, "application/json", "null"),
            "empty": (200, "application/json", ""),
            "cut": (CUT, "application/json", good[2][:20]),
            "slow": good,
        }
        with self.lock:
            fails = self.random.random() < self.share
            name = self.random.choice(sorted(bad))
            if not fails:
                return good
            self.failures.add(name)
        if name == "slow":
            time.sleep(1)
        return bad[name]


class Endpoint(Bench):
    def serve(self, reply: Reply, concurrency: int = 1) -> tuple[object, ...]:
        server = Server(reply)
        self.addCleanup(server.stop)
        return "--endpoint", server.url, "--model-name", "m", "--concurrency", concurrency

    def test_a_second_answer_after_feedback_on_a_terminal(self) -> None:
        first = "I cannot \ud800 do \0 \x1b[2J this."
        asked: list[list[dict[str, str]]] = []

        def reply(number: int, request: dict[str, Any]) -> tuple[int, str, str]:
            asked.append(request["messages"])
            softmax = "softmax" in request["messages"][1]["content"]
            if softmax and len(request["messages"]) == 2:
                return completion(first)
            return completion(honest(TASKS[softmax]))

        template = self.folder / "template.txt"
        template.write_text("On {{platform}}:\n{{task}}")
        command = self.command(*self.serve(reply), "--turns", 2, "--system", "be brief",
                               "--prompt-template", template, "--extra-body", '{"top_k": 5}',
                               "--prices", "1,2")  # fmt: skip
        terminal, stderr = pty.openpty()
        with open(terminal, "rb") as shown:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
            os.close(stderr)
            drawn = b""
            with contextlib.suppress(OSError):  # The terminal's end.
                while part := os.read(shown.fileno(), 1 << 16):
                    drawn += part
            self.assertEqual(process.wait(), 0, drawn)
        self.assertIn(b"3/3", drawn, "the bar does not end at all three verdicts")
        for words in ("sampling 1", "preparing 1", "measuring 1", "judged 3", "pass 100.0 %"):
            self.assertIn(words.encode(), drawn)
        (again,) = [messages for messages in asked if len(messages) == 4]
        self.assertEqual([one["role"] for one in again], ["system", "user", "assistant", "user"])
        self.assertEqual(again[0]["content"], "be brief")
        self.assertTrue(again[1]["content"].startswith("On CUDA:\n"))
        self.assertEqual(again[2]["content"], first.replace("\ud800", "\ufffd"))
        ((feedback,),) = self.rows("SELECT feedback FROM verdict WHERE outcome = 'extraction'")
        self.assertTrue(again[3]["content"].startswith(feedback), again[3]["content"])
        summary = json.loads((self.out / "summary.json").read_text())
        self.assertEqual(summary["outcomes"], {"extraction": 1, "pass": 2})
        self.assertEqual(summary["missing"], 0)
        figures = summary["groups"]["all"]
        self.assertEqual(figures["first_turn"]["value"], 0.5)
        self.assertEqual(figures["average"]["value"], 1)

    def test_kills_and_a_bad_server_change_nothing(self) -> None:
        seed = random.randrange(1_000_000)
        print(f"faults and kills: seed {seed}", file=sys.stderr)
        rng = random.Random(seed)
        wanted = ("--samples", 2, "--turns", 2, "--retries", 9, "--seed", 1)
        records = ("SELECT task, sample, turn, completion FROM answer ORDER BY 1, 2, 3",
                   "SELECT task, sample, turn, outcome, reward FROM verdict "
                   "ORDER BY 1, 2, 3")  # fmt: skip

        def good(number: int, request: dict[str, Any]) -> tuple[int, str, str]:
            return completion(scripted(request))

        summary = self.measure(*self.serve(good, 4), *wanted)
        undisturbed = [self.rows(query) for query in records]
        self.assertEqual(len(undisturbed[0]), len(undisturbed[1]))
        shutil.rmtree(self.out)
        nasty = Nasty(seed, 0.3)
        given = (*self.serve(nasty, 4), *wanted)
        verdicts = "SELECT task, sample, turn, seconds FROM verdict"
        seen: set[tuple[Any, ...]] = set()
        for table in ("answer", "verdict"):
            process = subprocess.Popen(self.command(*given), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)  # fmt: skip
            num = len(seen)
            while process.poll() is None:
                with contextlib.suppress(sqlite3.Error):  # Before the first table is there.
                    if len(self.rows(f"SELECT * FROM {table}")) > num:
                        break
                time.sleep(0.02)
            time.sleep(rng.uniform(0, 0.3))
            process.kill()
            process.wait()
            seen |= set(self.rows(verdicts))
        self.assertEqual(self.measure(*given), summary)
        self.assertEqual([self.rows(query) for query in records], undisturbed)
        self.assertLessEqual(seen, set(self.rows(verdicts)), "what was judged was judged again")

    def test_a_model_behind_one_that_is_busy_at_first(self) -> None:
        example = (ROOT / "data/prompts/example.py").read_text().split("\n", 1)[1]

        def reply(number: int, request: dict[str, Any]) -> tuple[int, str, str]:
            if number == 1:
                return 503, "text/plain", "busy"
            prompt = request["messages"][-1]["content"]
            self.assertIn(example, prompt)
            if "softmax" in prompt:
                body = '{"error": {"message": "the prompt is too long"}}'
                return 400, "application/json", body
            return completion(honest(TASKS[0]))

        given = (*self.serve(reply), "--prompt-template", "one-shot")
        summary = self.measure(*given, code=UNANSWERED)
        self.assertEqual(self.settings()["prompt_template"], "one-shot")
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
        self.assertEqual(done.returncode, UNANSWERED, done.stderr)
        self.assertIn("unfinished: 1 of 2 samples", done.stdout)
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
        done = run("report", self.out, "--csv", self.folder / "rows.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("has no verdict yet", done.stderr)


@unittest.skipUnless(LEARN.exists(), "musacoder-learn is not built")
class Model(Bench):
    def model(self, seed: int) -> Path:
        """Weights of random numbers, which answer what holds no module."""
        tokenizer, folder = self.folder / "tokenizer.json", self.folder / f"model-{seed}"
        text = self.folder / "text.jsonl"
        row = {"messages": [{"role": "user", "content": "write a kernel"}]}
        text.write_text((json.dumps(row) + "\n") * 20)
        make: list[object] = [sys.executable, ROOT / "tools/make_tokenizer.py", "--text", text]
        subprocess.run([*map(str, make), "--vocab", "270", "--out", tokenizer], check=True)
        sizes = ("--layers", 1, "--width", 32, "--heads", 2, "--positions", 6000)
        init = [LEARN, "init", "--out", folder, "--tokenizer", tokenizer, "--seed", seed, *sizes]
        subprocess.run(list(map(str, init)), check=True, capture_output=True)
        return folder

    def test_a_models_folder_is_asked_again_with_feedback(self) -> None:
        given = ("--model", self.model(1), "--samples", 2, "--turns", 2, "--max-tokens", 8,
                 "--temperature", 1)  # fmt: skip
        summary = self.measure(*given)
        self.assertEqual(summary["outcomes"], {"extraction": 8})
        answers = "SELECT task, sample, turn, completion FROM answer JOIN run ON run.id = run "
        first = self.rows(answers + "WHERE name = 'model-1'")
        self.assertEqual(len({row[:3] for row in first}), 8)
        (prompts,) = self.out.glob("answers-*/prompts-1.jsonl")
        for row in map(json.loads, prompts.read_text().splitlines()):
            self.assertEqual([one["role"] for one in row["prompt"]], ["user", "assistant", "user"])
        # A second model in the same folder has answers of its own.
        self.measure(*("--model", self.model(2)), *given[2:])
        self.assertEqual(len(self.rows("SELECT * FROM run")), 2)
        second = self.rows(answers + "WHERE name = 'model-2'")
        self.assertEqual(len(second), 8)
        self.assertNotEqual([row[3] for row in first], [row[3] for row in second])

    def test_optimize_asks_a_models_folder_too(self) -> None:
        module = self.folder / "row_softmax.py"
        module.write_text(
            "import torch\n\n\nclass RowSoftmax(torch.nn.Module):\n"
            "    def forward(self, x):\n        return torch.softmax(x, dim=-1)\n"
        )
        done = run("optimize", module, "--inputs", "f32[18,130]", "--out", self.out,
                   "--model", self.model(1), "--samples", 2, "--turns", 2, "--max-tokens", 8,
                   "--backend", "cpu")  # fmt: skip
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("No answer is correct (4 extraction)", done.stdout)
        answers = self.rows("SELECT sample, turn, completion FROM answer ORDER BY sample, turn")
        self.assertEqual([row[:2] for row in answers], [(0, 0), (0, 1), (1, 0), (1, 1)])


if __name__ == "__main__":
    unittest.main()
