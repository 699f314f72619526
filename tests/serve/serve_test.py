# SPDX-License-Identifier: Apache-2.0
"""The service and its clients, around a verifier that answers at once (noop_judge.py).

Needs aiohttp, but neither compiler nor PyTorch.  The real verifier behind the service is tried by
tests/e2e/served_test.py.
"""

from __future__ import annotations

import asyncio
import enum
import atexit
import http.client
import json
import os

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

from musacoder import client, kernelbench, slime, trl, verl  # noqa: E402

NOOP = [sys.executable, str(ROOT / "tests/serve/noop_judge.py")]
TASK = "class Model:\n    pass\n"


SERVER = [sys.executable, str(ROOT / "python/musacoder/server/__main__.py")]
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="mc-serve-")  # Jobs of fixed ports.
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
TOKEN = "sesame-sesame-sesame"


def start(*options: str, **environment: str) -> tuple[subprocess.Popen[str], int]:
    command = [*SERVER, "--port", "0", *options, "--", *NOOP]
    variables = {**os.environ, **environment}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, int(line.rsplit(":", 1)[1])


def ask(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """The status and the JSON of a reply; a body is sent as JSON unless `headers` say otherwise."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    text = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    connection.request(method, path, text, {"Content-Type": "application/json", **(headers or {})})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, json.loads(data)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def stop(process: subprocess.Popen[str]) -> int:
    process.terminate()
    code = process.wait(timeout=20)
    assert process.stdout is not None
    process.stdout.close()
    return code


class Served(unittest.TestCase):
    process: subprocess.Popen[str]
    port: int

    @classmethod
    def setUpClass(cls) -> None:
        cls.process, cls.port = start()
        os.environ["MUSACODER_URL"] = f"http://127.0.0.1:{cls.port}"

    @classmethod
    def tearDownClass(cls) -> None:
        assert stop(cls.process) == 0

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        text = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, text, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if headers.get("Accept") == "application/x-ndjson":
            return response.status, [json.loads(line) for line in data.splitlines()]
        return response.status, json.loads(data)


class Routes(Served):
    def test_an_answer_is_judged(self) -> None:
        status, reply = self.ask("POST", "/v1/evaluate", {"id": "a", "task": TASK, "answer": "yes"})
        self.assertEqual((status, reply["id"], reply["reward"]), (200, "a", 1.0))
        self.assertEqual(json.dumps(reply["verdict"]["task"]), json.dumps(str({"code": TASK})))

    def test_who_does_not_wait_gets_a_job(self) -> None:
        status, job = self.ask("POST", "/v1/evaluate?wait_ms=0", {"task": TASK, "answer": "yes"})
        self.assertEqual(status, 202)
        status, reply = self.ask("GET", f"/v1/jobs/{job['job']}?wait_ms=5000")
        self.assertEqual((status, reply["reward"]), (200, 1.0))
        self.assertEqual(self.ask("GET", "/v1/jobs/j1")[0], 404)
        self.assertEqual(self.ask("DELETE", f"/v1/jobs/{job['job']}")[0], 200)

    def test_batches_keep_their_order_or_stream(self) -> None:
        items = [{"id": str(i), "task": TASK, "answer": "fail" * (i % 2)} for i in range(9)]
        status, data = self.ask("POST", "/v1/evaluate/batch", {"items": items})
        self.assertEqual(status, 200)
        self.assertEqual([reply["id"] for reply in data["replies"]], [i["id"] for i in items])
        self.assertEqual({reply["reward"] for reply in data["replies"]}, {1.0, -1.0})
        status, lines = self.ask(
            "POST", "/v1/evaluate/batch", {"items": items}, Accept="application/x-ndjson"
        )
        self.assertEqual({line["id"] for line in lines}, {item["id"] for item in items})

    def test_what_is_wrong_is_said_and_harms_nobody(self) -> None:
        good = {"task": TASK, "answer": "yes"}
        for status, path, body in (
            (400, "/v1/evaluate", b"{"),
            (400, "/v1/evaluate", b"\xff\xfe"),
            (400, "/v1/evaluate", b"[" * 100_000),
            (400, "/v1/evaluate", []),
            (400, "/v1/evaluate", {"task": TASK}),
            (400, "/v1/evaluate", {"task": 7, "answer": "yes"}),
            (400, "/v1/evaluate", {"task": {"id": "x"}, "answer": "yes"}),
            (400, "/v1/evaluate", {"task": "/etc/passwd", "answer": "yes"}),
            (400, "/v1/evaluate", {"task": "tasks/../secret.py", "answer": "yes"}),
            (400, "/v1/evaluate", {"task": TASK, "answer": "x" * (5 << 20)}),
            (400, "/v1/evaluate", {"task": TASK, "answer": "\u00e9" * (3 << 20)}),
            (400, "/v1/evaluate", {"task": TASK, "answer": "yes \ud800"}),
            (400, "/v1/evaluate", {"task": TASK + "\udfff", "answer": "yes"}),
            (400, "/v1/evaluate", {"task": TASK, "answer": "yes", "id": "\ud800"}),
            (400, "/v1/compat/slime", {"label": TASK, "response": "\ud800", "prompt": "p"}),
            (400, "/v1/evaluate?wait_ms=soon", good),
            (422, "/v1/evaluate", {"task": TASK, "answer": "no task"}),
            (400, "/v1/evaluate/batch", {"items": []}),
            (400, "/v1/evaluate/batch", {"items": [good] * 1025}),
            (400, "/v1/evaluate", {**good, "option": {"mode": "eval"}}),
            (400, "/v1/evaluate", {**good, "task": {"code": "x", "name": "y"}}),
            (400, "/v1/evaluate/batch", {"items": [good], "wait": 3}),
            (404, "/v1/none", good),
            (413, "/v1/evaluate", b" " * (65 << 20)),
        ):
            with self.subTest(path=path, body=str(body)[:60]):
                found, reply = self.ask("POST", path, body)
                self.assertEqual(found, status, reply)
                self.assertIn("error", reply)
        self.assertEqual(self.ask("GET", "/v1/evaluate")[0], 405)
        self.assertEqual(self.ask("POST", "/v1/evaluate", good)[0], 200)

    def test_a_member_that_there_is_not_is_named(self) -> None:
        body = {"task": TASK, "answer": "yes", "option": {"mode": "eval"}}
        reply = self.ask("POST", "/v1/evaluate", body)[1]
        message = 'a question has no member "option": it takes id, task, answer, options'
        self.assertEqual(reply["error"], message)

    def test_one_of_a_batch_that_cannot_be_judged_has_its_own_error(self) -> None:
        items = [
            {"id": "a", "task": TASK, "answer": "yes"},
            {"id": "b", "task": TASK, "answer": "\ud800"},
            {"id": "c", "task": TASK},
            "no object",
            {"id": "e", "task": TASK, "answer": "yes \U0001f600"},
        ]
        status, data = self.ask("POST", "/v1/evaluate/batch", {"items": items})
        self.assertEqual(status, 200)
        replies = data["replies"]
        self.assertEqual([reply["id"] for reply in replies], ["a", "b", "c", "", "e"])
        self.assertEqual([reply.get("reward") for reply in replies], [1.0, None, None, None, 1.0])
        self.assertIn("lone surrogate", replies[1]["error"])
        self.assertIn('"answer"', replies[2]["error"])
        self.assertEqual(self.ask("GET", "/healthz")[1]["waiting"], 0)

    def test_slime_gets_a_score_and_no_score_for_what_says_nothing(self) -> None:
        def asked(response: str, query: str = "") -> tuple[int, Any]:
            body = {"prompt": "p", "response": response, "label": TASK}
            return self.ask("POST", "/v1/compat/slime" + query, body)

        self.assertEqual(asked("yes")[1]["score"], 1.0)
        self.assertEqual(asked("infra")[0], 503)
        self.assertIsNone(asked("unsupported")[1]["score"])
        self.assertEqual(asked("unsupported", "?unscored=-0.5")[1]["score"], -0.5)

    def test_a_verifier_that_ends_is_started_again(self) -> None:
        question = {"task": TASK, "answer": "crash"}
        self.assertEqual(self.ask("POST", "/v1/evaluate", question)[0], 502)
        for _ in range(200):
            if self.ask("GET", "/readyz")[0] == 200:
                break
            time.sleep(0.02)
        self.assertTrue(client.evaluate(TASK, "yes").passed)


class Sample(types.SimpleNamespace):
    """The part of slime's that a reward reads."""

    Status = enum.Enum("Status", "COMPLETED TRUNCATED")
    status = Status.COMPLETED


class Hooks(Served):
    def test_verl(self) -> None:
        scores = verl.compute_score("forge", "yes", TASK, {})
        self.assertEqual((scores["score"], scores["scored"]), (1.0, 1.0))
        scores = asyncio.run(verl.compute_score_async("forge", "unsupported", TASK))
        self.assertEqual((scores["score"], scores["scored"]), (verl.UNSUPPORTED, 0.0))

    def test_trl_gets_the_least_of_the_group_for_what_is_unsupported(self) -> None:
        metrics: dict[str, float] = {}
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "fail"}]
        answers: list[trl.Completion] = ["yes", "unsupported", turns]
        for columns in (
            {"task": [TASK] * 3},
            {"ground_truth": [TASK] * 3, "options": [None, {"trials": 2}, None]},
            {"reward_model": [{"ground_truth": TASK}] * 3},
        ):
            found = trl.reward(
                completions=answers, prompts=["?"] * 3, log_metric=metrics.__setitem__, **columns
            )
            self.assertEqual(found, [1.0, -1.0, -1.0])
        self.assertAlmostEqual(metrics["musacoder/scored"], 2 / 3)
        with self.assertRaisesRegex(client.Refused, "no column"):
            trl.reward(completions=["yes"])

    def test_kernelbench(self) -> None:
        result = kernelbench.eval_kernel_against_ref(TASK, "yes", seed_num=1, device=None)
        assert result is not None
        self.assertTrue(result.compiled and result.correctness)
        self.assertEqual(result.runtime, -1)
        self.assertIsNone(kernelbench.eval_kernel_against_ref(TASK, "infra"))

    def test_slime_removes_what_has_no_score(self) -> None:
        for answer, value, removed in (("yes", 1.0, False), ("infra", 0.0, True)):
            sample = Sample(label=TASK, response=answer, metadata=None, remove_sample=False)
            self.assertEqual(asyncio.run(slime.reward(None, sample)), value)
            self.assertEqual(sample.remove_sample, removed)

    def test_a_wrong_task_is_refused_and_a_dead_service_named(self) -> None:
        with self.assertRaisesRegex(client.Refused, "no class Model"):
            client.evaluate(TASK, "no task")
        with self.assertRaisesRegex(client.Unreachable, "musacoder serve"):
            client.Client("http://127.0.0.1:9", retry_s=0).evaluate(TASK, "yes")

    def test_a_full_queue_is_said(self) -> None:
        process, port = start("--queue", "1")
        try:
            items = [{"task": TASK, "answer": "yes"}] * 2
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            body, kind = json.dumps({"items": items}), {"Content-Type": "application/json"}
            connection.request("POST", "/v1/evaluate/batch", body, kind)
            response = connection.getresponse()
            self.assertEqual(response.status, 429)
            self.assertEqual(response.getheader("Retry-After"), "1")
            response.read()
            connection.close()
        finally:
            stop(process)


class Gates(Served):
    """Which requests are looked at: not those that a web page in a browser can send."""

    GOOD = {"task": TASK, "answer": "yes"}

    def refuse(self, status: int, path: str = "/v1/evaluate", **headers: str) -> None:
        """Nothing is judged, and the reply holds nothing but why."""
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        before = ask(self.port, "GET", "/healthz")[1]["judged"]
        for method in ("POST", "GET") if status != 415 else ("POST",):
            found, reply = ask(self.port, method, path, self.GOOD, given)
            self.assertEqual((found, set(reply)), (status, {"error"}), headers)
        self.assertEqual(ask(self.port, "GET", "/healthz")[1]["judged"], before)

    def test_a_page_of_another_origin(self) -> None:
        for origin in (
            "https://example.org",
            "null",
            "http://127.0.0.1",
            f"https://127.0.0.1:{self.port}",
            f"http://127.0.0.1:{self.port + 1}",
            f"http://localhost:{self.port}",
            f"http://127.0.0.1:{self.port}.example.org",
        ):
            self.refuse(403, Origin=origin)
            self.refuse(403, "/healthz", Origin=origin)
        self.refuse(403, Sec_Fetch_Site="cross-site")
        self.refuse(403, "/v1/jobs/x", Sec_Fetch_Site="same-site")

    def test_a_page_may_not_even_ask_for_permission(self) -> None:
        asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("OPTIONS", "/v1/evaluate", headers=asked)
        response = connection.getresponse()
        self.assertEqual(response.status, 403)
        self.assertIsNone(response.getheader("Access-Control-Allow-Origin"))
        connection.close()

    def test_a_name_that_was_made_to_resolve_to_this_machine(self) -> None:
        for host in (
            "example.org",
            f"example.org:{self.port}",
            f"127.0.0.1.example.org:{self.port}",
            f"127.evil.example:{self.port}",
            f"localhost.example.org:{self.port}",
            "0.0.0.0",
            "192.168.0.7",
            "127.0.0.1@example.org",
            "",
        ):
            self.refuse(403, Host=host)
        for host in ("localhost", f"LOCALHOST:{self.port}", f"[::1]:{self.port}", "127.0.0.1:80"):
            found, _ = ask(self.port, "POST", "/v1/evaluate", self.GOOD, {"Host": host})
            self.assertEqual(found, 200, host)

    def test_two_hosts_or_none(self) -> None:
        for hosts in ([], ["Host: 127.0.0.1", "Host: example.org"]):
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as raw:
                lines = ["GET /healthz HTTP/1.1", *hosts, "Connection: close", "", ""]
                raw.sendall("\r\n".join(lines).encode())
                status = raw.makefile().readline().split()[1]
            self.assertIn(status, ("400", "403"))

    def test_a_body_that_a_page_can_send_without_permission(self) -> None:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            self.refuse(415, Content_Type=kind)
        self.refuse(415, "/v1/evaluate/batch", Content_Type="text/plain")
        self.refuse(415, "/v1/compat/slime", Content_Type="text/plain; application/json")
        good = {"Content-Type": "application/json; charset=utf-8"}
        self.assertEqual(ask(self.port, "POST", "/v1/evaluate", self.GOOD, good)[0], 200)

    def test_a_job_is_known_to_nobody_else(self) -> None:
        def job() -> str:
            path = "/v1/evaluate?wait_ms=0"
            return str(ask(self.port, "POST", path, {**self.GOOD, "answer": "slow"})[1]["job"])

        names = [job(), job()]
        self.assertTrue(all(len(name) >= 20 for name in names), names)
        self.assertEqual(len({name[:8] for name in names}), 2, "they have a beginning in common")
        for guess in ("j1", "j2", "1", "0", names[0][:-1], names[0].swapcase()):
            self.assertEqual(ask(self.port, "GET", f"/v1/jobs/{guess}?wait_ms=0")[0], 404)
            self.assertEqual(ask(self.port, "DELETE", f"/v1/jobs/{guess}")[0], 404)
        self.assertEqual(ask(self.port, "GET", f"/v1/jobs/{names[0]}")[0], 200)


class Tokens(unittest.TestCase):
    def test_one_that_is_set_is_needed(self) -> None:
        process, port = start(MUSACODER_TOKEN=TOKEN)
        good = {"task": TASK, "answer": "yes"}
        try:
            for given in (
                None,
                TOKEN,
                f"Bearer {TOKEN}x",
                f"Basic {TOKEN}",
                "Bearer",
                "Bearer \xe9",
            ):
                sent = {} if given is None else {"Authorization": given}
                self.assertEqual(ask(port, "POST", "/v1/evaluate", good, sent)[0], 401, given)
            self.assertEqual(ask(port, "GET", "/v1/jobs/x")[0], 401)
            self.assertEqual(ask(port, "GET", "/healthz")[0], 200)
            url = f"http://127.0.0.1:{port}"
            self.assertTrue(client.Client(url, token=TOKEN).evaluate(TASK, "yes").passed)
            with self.assertRaisesRegex(client.Refused, "token"):
                client.Client(url, token="wrong").evaluate(TASK, "yes")
        finally:
            stop(process)

    def test_beyond_loopback_nothing_goes_without(self) -> None:
        for host in ("0.0.0.0", "::", "192.0.2.1", "127.evil.example"):
            command = [*SERVER, "--host", host, "--", *NOOP]
            done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, "^musacoder: --host .* --token-file.*\n$")

    def test_beyond_loopback_with_a_token(self) -> None:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(TOKEN + "\n")
            file.flush()
            options = ("--host", "0.0.0.0", "--token-file", file.name, "--allow-host", "judge.test")
            process, port = start(*options)
        try:
            bearer = {"Authorization": f"bearer {TOKEN}"}
            good = {"task": TASK, "answer": "yes"}
            for host, status in (("judge.test:1", 200), ("192.0.2.7", 200), ("example.org", 403)):
                headers = {**bearer, "Host": host}
                self.assertEqual(ask(port, "POST", "/v1/evaluate", good, headers)[0], status, host)
            self.assertEqual(ask(port, "POST", "/v1/evaluate", good)[0], 401)
        finally:
            stop(process)

    def test_a_token_that_can_be_guessed_is_refused(self) -> None:
        command = [*SERVER, "--", *NOOP]
        for token in (
            "short",
            "with spaces and more",
            "gr\u00fc\u00dfe-gr\u00fc\u00dfe-gr\u00fc\u00dfe",
        ):
            environment = {**os.environ, "MUSACODER_TOKEN": token}
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=20, check=False, env=environment
            )
            self.assertEqual(done.returncode, 2)
            self.assertIn("at least 16 characters", done.stderr)
            self.assertNotIn(token, done.stderr)


class Beginnings(unittest.TestCase):
    """The service before it can judge, and on a machine where it cannot."""

    def test_one_that_cannot_judge_ends_with_the_verifiers_code(self) -> None:
        for code in ("1", "2"):
            port = free_port()
            command = [*SERVER, "--port", str(port), "--", *NOOP, "0", code]
            done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual((done.returncode, done.stdout), (int(code), ""))
            self.assertEqual(done.stderr, "noop judge: this machine cannot judge\n")

    def test_it_is_not_ready_before_it_can_judge(self) -> None:
        port = free_port()
        command = [*SERVER, "--port", str(port), "--", *NOOP, "3"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            for _ in range(100):
                try:
                    status, health = ask(port, "GET", "/healthz")
                    break
                except OSError:
                    time.sleep(0.05)
            self.assertEqual((status, health["status"]), (503, "starting"))
            question = {"task": TASK, "answer": "yes"}
            self.assertEqual(ask(port, "POST", "/v1/evaluate", question)[0], 503)
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), f"listening on http://127.0.0.1:{port}\n")
            self.assertEqual(ask(port, "GET", "/healthz")[0], 200)
            self.assertEqual(ask(port, "POST", "/v1/evaluate", question)[0], 200)
        finally:
            stop(process)


class Ends(unittest.TestCase):
    def test_work_that_is_taken_is_done_and_no_other_is_taken(self) -> None:
        process, port = start("--grace", "20")
        job = ask(port, "POST", "/v1/evaluate?wait_ms=0", {"task": TASK, "answer": "slow"})[1]
        process.terminate()
        for _ in range(100):
            status, health = ask(port, "GET", "/healthz")
            if health["status"] == "stopping":
                break
        self.assertEqual((status, health["status"]), (503, "stopping"))
        self.assertEqual(ask(port, "POST", "/v1/evaluate", {"task": TASK, "answer": "x"})[0], 503)
        self.assertEqual(ask(port, "GET", f"/v1/jobs/{job['job']}")[1]["reward"], 1.0)
        self.assertEqual(process.wait(timeout=20), 0)
        assert process.stdout is not None
        process.stdout.close()

    def test_but_not_for_longer_than_the_grace(self) -> None:
        for grace, signals in (("1", 1), ("3600", 2)):
            process, port = start("--grace", grace)
            ask(port, "POST", "/v1/evaluate?wait_ms=0", {"task": TASK, "answer": "never"})
            for _ in range(signals):
                process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
            begin = time.monotonic()
            self.assertEqual(process.wait(timeout=20), 0)
            self.assertLess(time.monotonic() - begin, 8)
            assert process.stdout is not None
            process.stdout.close()


if __name__ == "__main__":
    unittest.main()
