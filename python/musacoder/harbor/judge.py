# SPDX-License-Identifier: Apache-2.0
"""Asks a service for the verdict on one answer, in the container of Harbor's verifier.

    judge.py ANSWER REWARD     the question's other parts are in question.json beside this file

REWARD is written if the verdict judges the answer.  Otherwise there is no such file and the exit
code is 1, so that the trial is an error and not a failed answer.  The program needs only the
standard library; $MUSACODER_URL is the service, $MUSACODER_TOKEN its token.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TRY_S = 780.0  # Less than the time of [verifier] in task.toml.
PAUSE_S = 5.0
AGAIN = (429, 502, 503)


def reply_to(url: str, body: bytes | None) -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("MUSACODER_TOKEN", ""):
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=90) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, {"error": error.read().decode(errors="replace")}


def verdict_on(question: dict[str, Any], service: str) -> dict[str, Any]:
    """The service's reply.  Raises OSError."""
    until = time.monotonic() + TRY_S
    job = ""
    while time.monotonic() < until:
        path = f"/v1/jobs/{job}" if job else "/v1/evaluate"
        body = None if job else json.dumps(question).encode()
        try:
            status, reply = reply_to(f"{service}{path}?wait_ms=60000", body)
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            status, reply = 503, {"error": str(error)}
        if status == 200:
            return reply
        if status == 202:
            job = reply["job"]
        elif status in AGAIN or (job and status == 404):
            job = ""
            time.sleep(PAUSE_S)
        else:
            raise OSError(f"{service}: {status}: {reply['error']}")
    raise OSError(f"{service}: no verdict in {TRY_S:.0f} s")


def main() -> int:
    answer, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.unlink(missing_ok=True)
    question = json.loads((Path(__file__).parent / "question.json").read_text(encoding="utf-8"))
    question["answer"] = answer.read_text("utf-8", "replace") if answer.is_file() else ""
    reply = verdict_on(question, os.environ["MUSACODER_URL"].rstrip("/"))
    outcome = reply["verdict"]["outcome"]["kind"]
    print(f"outcome: {outcome}\nreward: {reply['reward']}\n{reply['feedback']}")
    if reply["reward"] is None:
        return 1
    rewards = {"reward": reply["reward"], "passed": float(outcome == "pass")}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rewards) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
