# SPDX-License-Identifier: Apache-2.0
"""`musacoder serve` with the real verifier behind it, asked by the Python package."""

from __future__ import annotations

import subprocess
import sys
import unittest

from program import MUSACODER, ROOT, honest, run

TASK = "reduction/row_sum"
sys.path.insert(0, str(ROOT / "python"))

import musacoder  # noqa: E402


class Serve(unittest.TestCase):
    def test_verdicts_over_http(self) -> None:
        code = (ROOT / "data/tasks" / f"{TASK}.py").read_text()
        command = [MUSACODER, "serve", "--port", "0", "--backend", "cpu", "--seed", "1"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            client = musacoder.Client(process.stdout.readline().split()[-1])
            for task in (TASK, code):
                self.assertEqual(client.evaluate(task, honest(TASK)).reward, 1.0)
            self.assertEqual(client.evaluate(code, "I cannot.").outcome, "extraction")
            with self.assertRaisesRegex(musacoder.Refused, "no class Model"):
                client.evaluate({"code": "import torch"}, honest(TASK))
            process.terminate()
            self.assertEqual(process.wait(timeout=30), 0)
            client.close()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def test_a_child_of_this_process_judges_without_a_service(self) -> None:
        program = musacoder.Program(MUSACODER, ["--backend", "cpu", "--jobs", "1", "--seed", "1"])
        try:
            self.assertEqual(program.evaluate(TASK, honest(TASK)).reward, 1.0)
            with self.assertRaisesRegex(musacoder.Refused, "trials"):
                program.evaluate(TASK, honest(TASK), options={"trials": -1})
        finally:
            program.close()

    def test_wrong_use_is_said_in_one_line(self) -> None:
        for options, words in (
            (["--host", "0.0.0.0"], "--token-file"),
            (["--grace", "-1"], "--grace"),
            (["--port", "99999"], "99999"),
            (["--bakcend", "cpu", "--port", "0"], "--bakcend"),
        ):
            with self.subTest(options=options):
                done = run("serve", *options)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
