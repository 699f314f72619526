# SPDX-License-Identifier: Apache-2.0
"""The service and its clients, around a verifier that answers at once (noop_judge.py).

Needs aiohttp, but neither compiler nor PyTorch.  The real verifier behind the service is tried by
tests/e2e/served_test.py.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import subprocess
import sys
import types
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

from musacoder import client, kernelbench, slime, verl  # noqa: E402

NOOP = [sys.executable, str(ROOT / "tests/serve/noop_judge.py")]
TASK = "class Model:\n    pass\n"


def start(*options: str) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, str(ROOT / "python/musacoder/server.py"), "--port", "0", *options]
    process = subprocess.Popen([*command, "--", *NOOP], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, int(line.rsplit(":", 1)[1])


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
        connection.request(method, path, text, headers)
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
        self.assertEqual(self.ask("GET", "/v1/jobs/j999999")[0], 404)
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
            (400, "/v1/evaluate?wait_ms=soon", good),
            (422, "/v1/evaluate", {"task": TASK, "answer": "no task"}),
            (400, "/v1/evaluate/batch", {"items": []}),
            (400, "/v1/evaluate/batch", {"items": [good] * 1025}),
            (404, "/v1/none", good),
            (413, "/v1/evaluate", b" " * (65 << 20)),
        ):
            with self.subTest(path=path, body=str(body)[:60]):
                found, reply = self.ask("POST", path, body)
                self.assertEqual(found, status, reply)
                self.assertIn("error", reply)
        self.assertEqual(self.ask("GET", "/v1/evaluate")[0], 405)
        self.assertEqual(self.ask("POST", "/v1/evaluate", good)[0], 200)

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
        self.assertEqual(self.ask("POST", "/v1/evaluate", question)[0], 503)
        for _ in range(50):
            if self.ask("GET", "/healthz")[0] == 200:
                break
        self.assertTrue(client.evaluate(TASK, "yes").passed)


class Hooks(Served):
    def test_verl(self) -> None:
        scores = verl.compute_score("forge", "yes", TASK, {})
        self.assertEqual((scores["score"], scores["scored"]), (1.0, 1.0))
        scores = asyncio.run(verl.compute_score_async("forge", "unsupported", TASK))
        self.assertEqual((scores["score"], scores["scored"]), (verl.UNSCORED, 0.0))

    def test_kernelbench(self) -> None:
        result = kernelbench.eval_kernel_against_ref(TASK, "yes", seed_num=1, device=None)
        assert result is not None
        self.assertTrue(result.compiled and result.correctness)
        self.assertEqual(result.runtime, -1)
        self.assertIsNone(kernelbench.eval_kernel_against_ref(TASK, "infra"))

    def test_slime_removes_what_has_no_score(self) -> None:
        for answer, value, removed in (("yes", 1.0, False), ("infra", 0.0, True)):
            sample = types.SimpleNamespace(
                label=TASK, response=answer, metadata=None, remove_sample=False
            )
            self.assertEqual(asyncio.run(slime.reward(None, sample)), value)
            self.assertEqual(sample.remove_sample, removed)

    def test_a_wrong_task_is_refused_and_a_dead_service_named(self) -> None:
        with self.assertRaisesRegex(client.Refused, "no class Model"):
            client.evaluate(TASK, "no task")
        client._RETRIES = 0
        with self.assertRaisesRegex(client.Unreachable, "musacoder serve"):
            client.Client("http://127.0.0.1:9").evaluate(TASK, "yes")
        client._RETRIES = 6

    def test_a_full_queue_is_said(self) -> None:
        process, port = start("--queue", "1")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            items = [{"task": TASK, "answer": "yes"}] * 2
            connection.request("POST", "/v1/evaluate/batch", json.dumps({"items": items}))
            response = connection.getresponse()
            self.assertEqual(response.status, 429)
            self.assertEqual(response.getheader("Retry-After"), "1")
            response.read()
            connection.close()
        finally:
            stop(process)


class Rules(unittest.TestCase):
    """The plug-in's formulas against the goldens of src/rl."""

    def golden(self, name: str) -> list[dict[str, Any]]:
        return list(json.loads((ROOT / "src/rl/golden" / name).read_text())["cases"])

    def test_prime_echo(self) -> None:
        tried = 0
        for case in self.golden("prime_echo.json"):
            if case["alpha"] != slime.ALPHA or case["b_early"] != [*slime.EARLY, 0.0]:
                continue
            tried += 1
            with self.subTest(case=case):
                found = slime.prime_echo(case["s"])
                if case["R"] is None:
                    self.assertIsNone(found)
                else:
                    self.assertAlmostEqual(found or 0.0, case["R"], delta=1e-6)
        self.assertGreater(tried, 5)

    def test_advantages(self) -> None:
        tried = 0
        for case in self.golden("advantage.json"):
            usual = (case["scale"], case["eps"], case["spread_min"], case["std_floor"])
            if usual != ("std", 1e-6, 1e-6, 0.0):
                continue
            tried += 1
            with self.subTest(case=case):
                found = slime.advantages(case["rewards"])
                for got, expected in zip(found, case["advantage"] or [0.0] * len(found)):
                    self.assertAlmostEqual(got, expected or 0.0, delta=1e-6)
        self.assertGreater(tried, 5)

    def test_next_prompt_keeps_the_conversation(self) -> None:
        class Tokenizer:
            eos_token = "<end>"

            def apply_chat_template(self, turns: Any, **_: bool) -> str:
                return "".join(f"[{t['role']}]{t['content']}<end>" for t in turns) + "[assistant]"

        text = slime.next_prompt(
            Tokenizer(), [{"role": "user", "content": "do"}], "done<end>", "no"
        )
        self.assertEqual(text, "[user]do<end>[assistant]done<end>[user]no<end>[assistant]")

    def test_advantages_leave_out_what_has_no_score(self) -> None:
        samples = [
            types.SimpleNamespace(group_index=i // 4, reward=r, remove_sample=r == 0.0)
            for i, r in enumerate([1.0, -1.0, 0.0, 1.0, -1.0, -1.0, -1.0, -1.0])
        ]
        raw, normed = slime.post_process_rewards(None, samples)
        self.assertEqual(raw[:2], [1.0, -1.0])
        self.assertEqual(normed[2], 0.0)
        self.assertEqual(normed[4:], [0.0] * 4)
        self.assertAlmostEqual(sum(normed[:4]), 0.0, places=6)


if __name__ == "__main__":
    unittest.main()
