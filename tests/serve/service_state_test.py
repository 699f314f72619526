# SPDX-License-Identifier: Apache-2.0
"""Tests of the service's state: jobs over restarts, quotas, figures, and its own document."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/serve")]

from musacoder.server.accounts import (  # noqa: E402
    Account,
    Accounts,
    OverQuota,
    digest_of,
    parse_accounts,
)
from musacoder.components import NAMES, others_of, parts_of, scaled  # noqa: E402
from musacoder.server.stats import Rate, Stats  # noqa: E402
from serve_test import (  # noqa: E402
    NOOP,
    SERVER,
    TASK,
    Served,
    ask,
    free_port,
    start,
    stop,
)

GOOD = {"task": TASK, "answer": "yes"}


def get_text(port: int, path: str) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response, text


class Restarts(unittest.TestCase):
    """Jobs are continued by the next service with the same folder."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.options = ("--state", folder.name, "--grace", "0")

    def accept(self, port: int, answer: str) -> str:
        body = {"task": TASK, "answer": answer, "id": f"my {answer}"}
        status, reply = ask(port, "POST", "/v1/evaluate?wait_ms=0", body)
        self.assertEqual(status, 202)
        return str(reply["job"])

    def test_accepted_jobs_are_continued_whether_it_was_ended_or_killed(self) -> None:
        for is_killed in (False, True):
            process, port = start(*self.options)
            try:
                done = self.accept(port, "yes")
                self.assertEqual(ask(port, "GET", f"/v1/jobs/{done}")[1]["reward"], 1.0)
                undone = [self.accept(port, answer) for answer in ("slow", "fail", "slow", "yes")]
            finally:
                if is_killed:
                    process.kill()
                stop(process)
            process, port = start(*self.options)
            try:
                found = [ask(port, "GET", f"/v1/jobs/{job}")[1] for job in [done, *undone]]
                self.assertEqual([one["reward"] for one in found], [1.0, 1.0, -1.0, 1.0, 1.0])
                self.assertEqual(found[2]["id"], "my fail")
                self.assertEqual(ask(port, "DELETE", f"/v1/jobs/{done}")[0], 200)
                self.assertEqual(ask(port, "GET", f"/v1/jobs/{done}")[0], 404)
            finally:
                stop(process)

    def test_a_job_at_which_the_verifier_ends_each_time_ends(self) -> None:
        process, port = start(*self.options)
        try:
            others = [self.accept(port, "slow"), self.accept(port, "fail")]
            job = self.accept(port, "crash")
            others += [self.accept(port, "slow"), self.accept(port, "yes")]
            status, reply = ask(port, "GET", f"/v1/jobs/{job}")
            self.assertEqual((status, reply["id"]), (502, "my crash"))
            self.assertEqual(ask(port, "GET", f"/v1/jobs/{job}")[0], 502)
            rewards = [ask(port, "GET", f"/v1/jobs/{other}")[1]["reward"] for other in others]
            self.assertEqual(rewards, [1.0, -1.0, 1.0, 1.0])
        finally:
            stop(process)

    def test_a_default_folder_that_cannot_be_written_ends_nothing(self) -> None:
        command = [*SERVER, "--port", str(free_port()), "--", *NOOP]
        environment = {**os.environ, "XDG_STATE_HOME": "/proc/nowhere"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None and process.stderr is not None
        self.assertIn("listening on", process.stdout.readline())
        stop(process)
        self.assertIn("jobs end with the service", process.stderr.readline())
        process.stderr.close()

    def test_a_folder_serves_one_service(self) -> None:
        process, _ = start(*self.options)
        try:
            with self.assertRaises(IndexError):  # The second one prints no address.
                start(*self.options)
        finally:
            stop(process)


class Quotas(unittest.TestCase):
    def test_a_rate_is_a_bucket_that_a_minute_fills(self) -> None:
        now = [0.0]
        account = Account("a", b"", minute_max=60, clock=lambda: now[0])
        account.take(60)
        for wait_s in (1, 5):
            with self.assertRaises(OverQuota) as over:
                account.take(wait_s)
            self.assertEqual(over.exception.retry_after_s, wait_s)
        now[0] = 5
        account.take(5)
        with self.assertRaises(OverQuota):
            account.take(1)

    def test_files_of_tokens(self) -> None:
        digest = digest_of("sesame-sesame-sesame").hex()
        text = f"# Names.\na sha256:{digest} waiting=2 minute=9\n\nb sha256:{'0' * 64}\n"
        accounts = Accounts(parse_accounts(text, "f"))
        found = accounts.find(b"sesame-sesame-sesame")
        assert found is not None
        self.assertEqual((found.name, found.waiting_max, found.minute_max), ("a", 2, 9))
        self.assertIsNone(accounts.find(b"sesame-sesame-sesamE"))
        for wrong, where in (
            ("a\n", "f:1"),
            ("a sesame-sesame-sesame", "f:1"),
            (f"\na sha256:{digest} waiting=0", "f:2"),
            (f"a sha256:{digest}\na sha256:{digest}", "same name"),
            ("", "no token"),
        ):
            with self.assertRaisesRegex(ValueError, where):
                parse_accounts(wrong, "f")

    def test_tokens_have_their_own_quotas(self) -> None:
        names = ("small", "large")
        lines = [
            f"{name} sha256:{digest_of(name * 5).hex()} {limits}\n"
            for name, limits in zip(names, ("waiting=1", "minute=3"))
        ]
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("".join(lines))
            file.flush()
            process, port = start("--tokens", file.name, "--grace", "0")
        small, large = ({"Authorization": f"Bearer {name * 5}"} for name in names)
        try:
            slow = {"task": TASK, "answer": "slow"}
            path = "/v1/evaluate?wait_ms=0"
            self.assertEqual(ask(port, "POST", path, slow, small)[0], 202)
            status, reply = ask(port, "POST", path, GOOD, small)
            self.assertEqual((status, reply["error"]), (429, "small may have 1 questions waiting"))
            for _ in range(3):
                self.assertEqual(ask(port, "POST", "/v1/evaluate", GOOD, large)[0], 200)
            self.assertEqual(ask(port, "POST", "/v1/evaluate", GOOD, large)[0], 429)
            self.assertEqual(ask(port, "POST", "/v1/evaluate", GOOD, small)[0], 200)
            for public in ("/", "/openapi.json", "/livez", "/readyz"):
                self.assertEqual(get_text(port, public)[0].status, 200)
            for hidden in ("/metrics", "/v1/status", "/v1/jobs/x"):
                self.assertEqual(get_text(port, hidden)[0].status, 401)
            accounts = ask(port, "GET", "/v1/status", headers=small)[1]["accounts"]
            self.assertEqual(accounts, {"small": 2, "large": 3})
        finally:
            stop(process)


class Figures(Served):
    def test_metrics_are_prometheus_text_and_count(self) -> None:
        before = ask(self.port, "GET", "/v1/status")[1]["outcomes"].get("wrong", 0)
        for answer in ("fail", "fail", "yes"):
            ask(self.port, "POST", "/v1/evaluate", {"task": TASK, "answer": answer})
        response, text = get_text(self.port, "/metrics")
        self.assertIn("version=0.0.4", response.headers["Content-Type"])
        sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.e+-]+')
        for line in text.splitlines():
            self.assertTrue(line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line), line)
        self.assertIn(f'musacoder_verdicts_total{{outcome="wrong"}} {before + 2}\n', text)
        self.assertIn("musacoder_ready 1\n", text)

    def test_a_question_that_the_verifier_has_not_begun_waits(self) -> None:
        for i in range(3):  # The verifier has read all three, and judges one at a time.
            body = {"task": TASK, "answer": f"slow {i}"}
            self.assertEqual(ask(self.port, "POST", "/v1/evaluate?wait_ms=0", body)[0], 202)
        status = ask(self.port, "GET", "/v1/status")[1]
        self.assertEqual((status["waiting"], status["judging"]), (2, 1))
        self.assertIn("musacoder_questions_waiting 2\n", self.metrics())
        ask(self.port, "POST", "/v1/evaluate", {"task": TASK, "answer": "slow too"})
        waited = re.search(r"musacoder_waiting_seconds_sum (\S+)", self.metrics())
        assert waited is not None
        self.assertGreater(float(waited[1]), 3)

    def metrics(self) -> str:
        return get_text(self.port, "/metrics")[1]

    def test_the_status_has_what_the_page_shows(self) -> None:
        name = {"id": "my <b>task</b>", "code": TASK}
        ask(self.port, "POST", "/v1/evaluate", {"task": name, "answer": "unsupported"})
        status = ask(self.port, "GET", "/v1/status")[1]
        self.assertEqual((status["status"], status["waiting"], status["judging"]), ("ok", 0, 0))
        first = status["recent"][0]
        self.assertEqual((first["task"], first["outcome"]), ("my <b>task</b>", "unsupported"))
        self.assertIsNone(first["reward"])
        self.assertIn("my <b>task</b>", [one["task"] for one in status["slowest"]])

    def test_the_page_runs_only_its_own_script_and_asks_only_this_service(self) -> None:
        response, text = get_text(self.port, "/")
        policy = response.headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'; script-src 'sha256-", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(re.findall(r"(?:src|href)=\"(?!data:)[^\"]*", text), [])

    def test_a_rate_is_of_whole_seconds(self) -> None:
        rate = Rate()
        for second in range(1000):
            rate.add(second + 0.5)
        self.assertEqual(rate.per_minute(1000.2, 60), 60)
        self.assertEqual(rate.per_minute(1030.2, 60), 30)

    def test_names_in_metrics_are_escaped(self) -> None:
        stats = Stats()
        reply = {"verdict": {"outcome": {"kind": 'a"\n\\b'}}}
        stats.add("t", "", 0, 0, reply)
        self.assertIn('{outcome="a\\"\\n\\\\b"} 1\n', stats.metrics({}))

    def test_the_document_has_all_routes(self) -> None:
        document = json.loads(get_text(self.port, "/openapi.json")[1])
        text = (ROOT / "python/musacoder/server/routes.py").read_text()
        routes = re.findall(r'web\.(get|post|delete)\("([^"]+)"', text)
        paths = document["paths"].items()
        described = {(method, path) for path, methods in paths for method in methods}
        self.assertEqual(set(routes), described)


class Components(unittest.TestCase):
    def test_parts_add_up_to_the_reward_scaled_or_not(self) -> None:
        for reward in (-1.0, -0.5, 0.0, 1.0, 1.2, 1.5):
            self.assertAlmostEqual(sum(parts_of(reward).values()), reward)
            parts = parts_of(reward, is_scaled=True)
            self.assertAlmostEqual(sum(parts.values()), scaled(reward))
            self.assertTrue(all(0 <= part <= 1 for part in parts.values()))
        self.assertEqual(parts_of(1.5), {"correct": 1.0, "speed": 0.5})
        self.assertEqual(parts_of(-0.5), {"correct": -0.5, "speed": 0.0})

    def test_scaled_rewards_keep_their_order_from_0_to_1(self) -> None:
        rewards = (-1.0, -0.5, 0.0, 1.0, 1.5, 9.0)
        self.assertEqual([scaled(one) for one in rewards], [0.0, 0.2, 0.4, 0.8, 1.0, 1.0])

    def test_memory_and_generality_are_those_of_a_pass(self) -> None:
        passed = {
            "kind": "pass",
            "generality": 0.5,
            "performance": {"memory_bytes": 30, "memory_eager_bytes": 40},
        }
        self.assertEqual(others_of({"outcome": passed}), {"memory": 0.25, "general": 0.5})
        more = {**passed, "performance": {"memory_bytes": 50, "memory_eager_bytes": 40}}
        self.assertEqual(others_of({"outcome": more})["memory"], 0.0)
        for none in ({**passed, "performance": None}, {**passed, "kind": "wrong"}):
            self.assertEqual(others_of({"outcome": none})["memory"], 0.0)


class NemoGym(Served):
    def body(self, answer: str, **more: Any) -> dict[str, Any]:
        message = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": answer, "annotations": []}],
        }
        output = [{"type": "reasoning", "summary": []}, message]
        return {
            "responses_create_params": {"input": "do"},
            "response": {"id": "r", "output": output},
            "verifier_metadata": {"task": TASK},
            **more,
        }

    def test_a_reward_and_the_request_come_back(self) -> None:
        for answer, reward in (("yes", 1.0), ("fail", -1.0)):
            body = self.body(answer, more=7)
            status, reply = ask(self.port, "POST", "/verify", body)
            self.assertEqual((status, reply["reward"], reply["mask_sample"]), (200, reward, False))
            self.assertEqual({key: reply[key] for key in body}, body)

    def test_the_reply_is_a_verify_response_of_several_rewards(self) -> None:
        """The members of NeMo Gym 0.7.0's BaseMultiRewardVerifyResponse, and their types."""
        described = ask(self.port, "GET", "/openapi.json")[1]["components"]["schemas"]
        for answer in ("yes", "fail", "infra", "unsupported"):
            body = self.body(answer)
            reply = ask(self.port, "POST", "/verify", body)[1]
            self.assertEqual(set(reply) - set(body), set(described["NemoResponse"]["properties"]))
            components = reply["reward_components"]
            self.assertEqual(list(components), ["correct", "speed"])
            self.assertAlmostEqual(sum(components.values()), reply["reward"])
            for name in NAMES:
                self.assertIsInstance(reply[name], float)
                self.assertEqual(components.get(name, reply[name]), reply[name])
            self.assertIsInstance(reply["reward"], float)
            self.assertIsInstance(reply["mask_sample"], bool)
            for name in ("failure_kind", "failure_reason"):
                self.assertIsInstance(reply[name], str if reply["mask_sample"] else type(None))
            if reply["mask_sample"]:
                self.assertRegex(reply["failure_kind"], r"\A([a-z]\w*:)?[a-z]\w*\Z")

    def test_what_has_no_reward_is_masked(self) -> None:
        for answer, kind in (
            ("infra", "verifier_error"),
            ("unsupported", "musacoder:unsupported"),
        ):
            status, reply = ask(self.port, "POST", "/verify", self.body(answer))
            self.assertEqual((status, reply["mask_sample"]), (200, True))
            self.assertEqual((reply["reward"], reply["failure_kind"]), (0.0, kind))

    def test_sessions_have_no_state(self) -> None:
        body = {"resources_session_id": "s"}
        for path in ("/seed_session", "/close_session"):
            self.assertEqual(ask(self.port, "POST", path, body), (200, body))
            self.assertEqual(ask(self.port, "POST", path, {"x": 1}), (200, {}))

    def test_a_body_without_a_task_is_wrong(self) -> None:
        wrong = self.body("yes", verifier_metadata={}), self.body("yes", response=7)
        for body in (*wrong, {}):
            self.assertEqual(ask(self.port, "POST", "/verify", body)[0], 400)


if __name__ == "__main__":
    unittest.main()
