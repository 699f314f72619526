#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the OpenEnv environment: OpenEnv's own validation, and an episode over its websocket.

    MUSACODER=build/dev/bin/musacoder python tools/openenv_try.py

Needs openenv, uvicorn and uv (PyPI).  The program judges; on a machine without a GPU set
MUSACODER_OPTIONS="--backend cpu".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from musacoder.openenv import EXAMPLE, KernelAction, KernelEnv  # noqa: E402

PORT = 8765
URL = f"http://127.0.0.1:{PORT}"
TASK = ROOT / "tasks/reduction/row_sum.py"
RACE = ROOT / "examples/row_sum_race.py"
HONEST = ROOT / "tests/corpus/honest/reduction/row_sum.py"


def run(*command: str, folder: Path | None = None) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, check=True, cwd=folder)


def validate_package() -> None:
    """In a copy, since the lock file is of this machine."""
    tools = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "python")
        shutil.copytree(ROOT / "python", copy)
        package = copy / "environment"
        run(str(tools / "uv"), "lock", "--quiet", folder=package)
        run(str(tools / "openenv"), "validate", ".", "--level", "static", folder=package)
        check = "from pathlib import Path; from openenv.cli._validation import *; "
        check += "found = validate_multi_mode_deployment(Path('.')); print(found); "
        check += "raise SystemExit(not found[0])"
        run(sys.executable, "-c", check, folder=package)


def wait_for_server() -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{URL}/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the server does not start")


def play() -> None:
    task = TASK.read_text()
    with KernelEnv(base_url=URL).sync() as env:
        first = env.reset(task=task, turns=3)
        assert task.strip() in first.observation.prompt and not first.done
        for answer, outcome in ((RACE, "wrong"), (HONEST, "pass")):
            result = env.step(KernelAction(answer=answer.read_text()))
            seen = result.observation
            line = seen.prompt.splitlines()[0]
            print(f"turn {seen.turn}: {seen.outcome}, {result.reward}, {result.done}: {line}")
            assert seen.outcome == outcome, seen.outcome
            assert result.done == (outcome == "pass")
        state = env.state()
        assert state.rewards[-1] == 1.0 and state.step_count == 2, state
        env.reset(task=EXAMPLE, turns=1)
        result = env.step(KernelAction(answer="I cannot."))
        assert result.done and result.reward == -1.0
        print("an episode of one turn ends after it")


def main() -> int:
    validate_package()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "uvicorn", "musacoder.openenv:app", "--port", str(PORT)]
    with subprocess.Popen([*command, "--log-level", "warning"], env=environment) as server:
        try:
            wait_for_server()
            run(str(Path(sys.executable).parent / "openenv"), "validate", "--url", URL)
            play()
        finally:
            server.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
