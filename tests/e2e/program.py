# SPDX-License-Identifier: Apache-2.0
"""The program under test, named by $MUSACODER, and parts that scenarios share.

Scenarios run the program as users do; no GPU and no network but loopback are needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
import unittest
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HONEST = ROOT / "tests/corpus/honest"
MUSACODER = os.environ.get("MUSACODER", str(ROOT / "build/dev/bin/musacoder"))
MACHINE_FAILED = 1
BAD_INPUT = 2
SOME_FAIL = 3
UNANSWERED = 4
# Lines on standard error that are no errors.
STEPS = ("starting PyTorch", "preparing the CPU backend")


def run(
    *arguments: object, within: Sequence[str] = (), **options: Any
) -> subprocess.CompletedProcess[str]:
    """The program with these arguments; `within` is a command that starts it."""
    command = [*within, MUSACODER, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, **options
    )


def errors_of(stderr: str) -> list[str]:
    """The lines that are no long steps."""
    return [line for line in stderr.splitlines() if not any(step in line for step in STEPS)]


def honest(task: str) -> str:
    return (HONEST / f"{task}.py").read_text()


class InFolder(unittest.TestCase):
    """A scenario with a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path


Reply = Callable[[int, dict[str, Any]], tuple[int, str, str]]  # Status, content type, body.
CUT = 0  # In the place of a status: the connection ends within the body.


class Server:
    """A model on loopback that answers POSTs by a function of their number and body."""

    def __init__(self, reply: Reply) -> None:
        self.asked: list[list[dict[str, str]]] = []  # The messages of each request.
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(request["messages"])
                status, kind, body = reply(len(outer.asked), request)
                with contextlib.suppress(ConnectionError):  # The client was killed.
                    self.respond(status, kind, body)

            def respond(self, status: int, kind: str, body: str) -> None:
                self.send_response(status or 200)
                if status == CUT:
                    self.send_header("Content-Length", "1000000")
                    self.end_headers()
                    self.wfile.write(body.encode())
                    self.close_connection = True
                    return
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
