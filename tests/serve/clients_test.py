# SPDX-License-Identifier: Apache-2.0
"""The Python package's clients: several services, repeated questions, and a child of their own."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/serve")]

import musacoder  # noqa: E402
from musacoder.tries import Attempt, ConnectionLost, Reply, Services, Tries  # noqa: E402
from serve_test import NOOP, TASK, start, stop  # noqa: E402


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Rules(unittest.TestCase):
    def setUp(self) -> None:
        self.clock = Clock()

    def tries(self, *urls: str, retry_s: float = 60) -> Tries:
        return Tries(Services(urls), timeout=600, retry_s=retry_s, clock=self.clock)

    def test_the_least_loaded_service_is_asked(self) -> None:
        services = Services(("a", "b"))
        all_tries = [Tries(services, 600, 60, self.clock) for _ in range(5)]
        urls = [tries.begin().url for tries in all_tries]
        self.assertEqual(urls, ["a", "b", "a", "b", "a"])
        for i in (1, 3):
            all_tries[i].settle(Reply(200, None, {}))
        self.assertEqual(Tries(services, 600, 60, self.clock).begin().url, "b")

    def test_a_lost_connection_leads_to_another_service_at_once(self) -> None:
        tries = self.tries("a", "b")
        self.assertEqual(tries.begin(), Attempt("a", 0, ""))
        self.assertIsNone(tries.settle(ConnectionLost("refused")))
        self.assertEqual(tries.begin(), Attempt("b", 0, ""))
        self.assertEqual(tries.settle(Reply(200, None, {"x": 1})), {"x": 1})

    def test_a_full_service_is_given_the_time_that_it_asks_for(self) -> None:
        tries = self.tries("a")
        tries.begin()
        self.assertIsNone(tries.settle(Reply(429, 4, {})))
        self.assertTrue(4 <= tries.begin().pause_s <= 5)

    def test_no_service_is_asked_for_longer_than_the_limits(self) -> None:
        for found, after_s in ((ConnectionLost("refused"), 60), (Reply(503, 2, {}), 600)):
            tries = self.tries("a")
            tries.begin()
            self.assertIsNone(tries.settle(found))
            tries.begin()
            self.clock.now += after_s
            with self.assertRaises(musacoder.Unreachable):
                tries.settle(found)

    def test_a_job_is_asked_for_where_it_is_until_it_is_unknown(self) -> None:
        tries = self.tries("a", "b")
        tries.begin()
        self.assertIsNone(tries.settle(Reply(202, None, {"job": "j"})))
        self.assertEqual(tries.begin(), Attempt("a", 0, "j"))
        self.assertIsNone(tries.settle(Reply(404, None, {"error": "no such job"})))
        self.assertEqual(tries.begin().job, "")

    def test_what_ends_the_verifier_is_not_asked_for_ever(self) -> None:
        tries = self.tries("a")
        for _ in range(2):
            tries.begin()
            self.assertIsNone(tries.settle(Reply(502, 1, {"error": "it ended"})))
        tries.begin()
        with self.assertRaisesRegex(musacoder.Unreachable, "it ended"):
            tries.settle(Reply(502, 1, {"error": "it ended"}))

    def test_a_wrong_question_is_not_repeated(self) -> None:
        for status in (400, 401, 403, 413, 415, 422):
            tries = self.tries("a")
            tries.begin()
            with self.assertRaisesRegex(musacoder.Refused, "wrong"):
                tries.settle(Reply(status, None, {"error": "wrong"}))

    def test_addresses(self) -> None:
        client = musacoder.Client("http://a:1, http://b:2/")
        self.assertEqual(client.urls, ["http://a:1", "http://b:2"])
        for wrong in ("https://a", "a:1", "http://a/v1/evaluate"):
            with self.assertRaisesRegex(musacoder.Refused, "expected an address"):
                musacoder.Client(wrong)


class Several(unittest.TestCase):
    """Two services, of which one is killed while both are asked."""

    def setUp(self) -> None:
        self.services = [start(), start()]
        self.urls = [f"http://127.0.0.1:{port}" for _, port in self.services]

    def tearDown(self) -> None:
        for process, _ in self.services:
            stop(process)

    def kill_one(self) -> None:
        self.services[0][0].kill()

    def test_threads(self) -> None:
        client = musacoder.Client(self.urls)

        def evaluate(i: int) -> bool:
            if i == 100:
                self.kill_one()
            return client.evaluate(TASK, "yes").passed

        with ThreadPoolExecutor(16) as threads:
            self.assertEqual(list(threads.map(evaluate, range(400))), [True] * 400)
            list(threads.map(lambda _: client.close(), range(16)))

    def test_asyncio(self) -> None:
        async def evaluate() -> list[musacoder.Judged]:
            async with musacoder.AsyncClient(self.urls) as client:
                asked = [client.evaluate(TASK, "yes") for _ in range(400)]
                asyncio.get_running_loop().call_later(0.1, self.kill_one)
                return await asyncio.gather(*asked)

        self.assertTrue(all(judged.passed for judged in asyncio.run(evaluate())))


class OwnChild(unittest.TestCase):
    """musacoder.evaluate without a service."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name, "musacoder")
        self.log = Path(folder.name, "log")
        self.program.write_text(f"#!/bin/sh\necho $$ $@ >> {self.log}\nexec {' '.join(NOOP)}\n")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def run_python(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment}
        variables = {key: value for key, value in variables.items() if key != "MUSACODER_URL"}
        command = [sys.executable, "-c", f"import musacoder, os, sys\nT={TASK!r}\n{code}"]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=False, env=variables
        )

    def wait_for_the_end(self) -> None:
        pids = [line.split()[0] for line in self.log.read_text().splitlines()]
        end = time.monotonic() + 10
        while any(Path("/proc", pid).exists() for pid in pids) and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual([pid for pid in pids if Path("/proc", pid).exists()], [])

    def test_it_is_started_once_and_ends_with_the_interpreter(self) -> None:
        for how_it_ends in ("pass", "os._exit(0)", "os.kill(os.getpid(), 9)"):
            self.log.unlink(missing_ok=True)
            code = f"for _ in range(3): print(musacoder.evaluate(T, 'yes').reward, flush=True)\n"
            options = {"MUSACODER": str(self.program), "MUSACODER_OPTIONS": "--backend cpu -j 2"}
            done = self.run_python(code + how_it_ends, **options)
            self.assertEqual(done.stdout, "1.0\n" * 3, done.stderr)
            started = self.log.read_text().splitlines()
            self.assertEqual(len(started), 1)
            self.assertTrue(started[0].endswith("eval --stream --backend cpu -j 2"), started)
            self.wait_for_the_end()

    def test_it_is_found_on_path_and_its_lack_is_told_in_one_line(self) -> None:
        path = f"{self.program.parent}:{os.environ['PATH']}"
        code = "print(musacoder.evaluate(T, 'yes').outcome)"
        self.assertEqual(self.run_python(code, PATH=path, MUSACODER="").stdout, "pass\n")
        done = self.run_python(code, PATH="/nowhere", MUSACODER="")
        self.assertIn("no musacoder on PATH: set $MUSACODER", done.stderr.splitlines()[-1])

    def test_after_a_crash_and_after_a_fork_another_one_is_started(self) -> None:
        code = """
try: musacoder.evaluate(T, "crash")
except musacoder.Unreachable as error: print(error)
print(musacoder.evaluate(T, "yes").outcome, flush=True)
if os.fork() == 0:
    print(musacoder.evaluate(T, "fail").outcome, flush=True)
    sys.exit()
os.wait()
print(musacoder.evaluate(T, "yes").outcome)
"""
        done = self.run_python(code, MUSACODER=str(self.program))
        lines = ["the program ended with 3; its standard error has the reason"]
        self.assertEqual(done.stdout.splitlines(), [*lines, "pass", "wrong", "pass"], done.stderr)
        self.assertEqual(len(self.log.read_text().splitlines()), 3)
        self.wait_for_the_end()

    def test_threads_and_asyncio_share_one(self) -> None:
        os.environ["MUSACODER_OPTIONS"] = ""
        program = musacoder.Program(str(self.program))
        self.addCleanup(program.close)

        async def ask() -> list[musacoder.Judged]:
            return await asyncio.gather(*(program.evaluate_async(TASK, "yes") for _ in range(50)))

        results: list[bool] = []
        threads = [
            threading.Thread(target=lambda: results.append(program.evaluate(TASK, "fail").passed))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        self.assertEqual([judged.outcome for judged in asyncio.run(ask())], ["pass"] * 50)
        for thread in threads:
            thread.join()
        self.assertEqual(results, [False] * 8)
        self.assertEqual(len(self.log.read_text().splitlines()), 1)
        with self.assertRaisesRegex(musacoder.Refused, "no class Model"):
            program.evaluate(TASK, "no task")


if __name__ == "__main__":
    unittest.main()
