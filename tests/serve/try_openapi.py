#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries a live service against its own OpenAPI document with schemathesis.

    python tests/serve/try_openapi.py [--examples 100] [--seed 1]

Needs schemathesis 4 (PyPI), and aiohttp for the service, whose verifier is the tests' own, which
answers at once.  Runs twice: with a token that is needed, and without tokens.  Fails on a response
that the document does not have, on a request that is taken although the document forbids it, on one
that is refused although the document allows it, and on any 500.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, str(ROOT / "python/musacoder/server/__main__.py"), "--port", "0"]
JUDGE = [sys.executable, str(ROOT / "tests/serve/noop_judge.py")]
TOKEN = "sesame-sesame-sesame"


def try_service(token: str, arguments: argparse.Namespace) -> int:
    environment = {**os.environ, "MUSACODER_TOKEN": token}
    command = [*SERVER, "--", *JUDGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        words = ["schemathesis.cli", "run", f"{url}/openapi.json", "--checks", "all"]
        words += ["--max-examples", str(arguments.examples), "--seed", str(arguments.seed)]
        # A question waits for no second; jobs are then as common as replies.
        words += ["--request-timeout", "30", "--suppress-health-check", "all"]
        if token:
            words += ["--header", f"Authorization: Bearer {token}"]
        try:
            return subprocess.run([sys.executable, "-m", *words], check=False).returncode
        finally:
            process.terminate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    return max(try_service(token, arguments) for token in ("", TOKEN))


if __name__ == "__main__":
    sys.exit(main())
