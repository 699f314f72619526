# SPDX-License-Identifier: Apache-2.0
"""Exports tasks in Harbor's form, one folder each (docs/trainers.md).

`musacoder task export` starts this file by its path (src/cli/export.cc).

    instruction.md, task.toml
    tests/      test.sh and judge.py, which call a service, and question.json
    solution/   a solution, if the task has one

The verifier has its own container: the agent may be root in its container, and must see neither the
service's token nor the reward file.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

BAD_INPUT = 2
ANSWER = "/app/answer.py"
IMAGE = "python:3.12-slim"  # An image, since verifiers builds no Dockerfile.

CONFIG = """\
schema_version = "1.4"
artifacts = ["{answer}"]

[task]
name = "musacoder/{name}"
description = "A GPU kernel for the PyTorch program {id}"

[metadata]
task = {id_json}

[environment]
docker_image = "{image}"

[agent]
timeout_sec = 3600.0

[verifier]
environment_mode = "separate"
timeout_sec = 900.0
env = {{ MUSACODER_URL = "${{MUSACODER_URL}}", MUSACODER_TOKEN = "${{MUSACODER_TOKEN:-}}" }}

[[verifier.collect]]  # An agent that wrote nothing has an empty answer, which fails.
command = "mkdir -p {folder} && touch {answer}"
"""
PLACE = "\nWrite the module into the file `{answer}`, without a fence. There is no GPU here.\n"
TEST = """\
#!/bin/sh
# test.sh [ANSWER [REWARD]]
exec python3 "$(dirname "$0")/judge.py" "${{1:-{answer}}}" "${{2:-/logs/verifier/reward.json}}"
"""
SOLVE = """\
#!/bin/sh
mkdir -p "$(dirname "${{1:-{answer}}}")"
cp "$(dirname "$0")/answer.py" "${{1:-{answer}}}"
"""


def name_of(task: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", task).strip("-._") or "task"


def write_script(path: Path, text: str) -> None:
    path.write_text(text.format(answer=ANSWER))
    path.chmod(0o755)


def export(row: dict[str, Any], folder: Path, solution: Path | None) -> None:
    """Writes one task; solution: a right answer."""
    (folder / "tests").mkdir(parents=True, exist_ok=True)
    asked = "\n\n".join(message["content"] for message in row["prompt"])
    (folder / "instruction.md").write_text(asked + PLACE.format(answer=ANSWER), encoding="utf-8")
    config = CONFIG.format(
        answer=ANSWER, folder=str(Path(ANSWER).parent), image=IMAGE, name=folder.name,
        id=folder.name, id_json=json.dumps(row["id"]),
    )  # fmt: skip
    (folder / "task.toml").write_text(config, encoding="utf-8")
    write_script(folder / "tests/test.sh", TEST)
    shutil.copyfile(Path(__file__).parent / "judge.py", folder / "tests/judge.py")
    question = {"task": {"id": row["id"], "code": row["code"]}}
    (folder / "tests/question.json").write_text(json.dumps(question) + "\n")
    if solution is not None:
        (folder / "solution").mkdir(exist_ok=True)
        shutil.copyfile(solution, folder / "solution/answer.py")
        write_script(folder / "solution/solve.sh", SOLVE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="musacoder task export")
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--solutions", default="")
    parser.add_argument("suite")
    arguments = parser.parse_args()
    listed = subprocess.run(
        [arguments.program, "task", "list", "--json", "--", arguments.suite],
        stdout=subprocess.PIPE, check=False,
    )  # fmt: skip
    if listed.returncode != 0:  # The program has printed the reason.
        return listed.returncode
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    by_name = {name_of(row["id"]): row["id"] for row in rows}
    for row in rows:
        other = by_name[name_of(row["id"])]
        if other != row["id"]:
            print(f"musacoder: {row['id']} and {other} would be one folder", file=sys.stderr)
            return BAD_INPUT
    num_solved = 0
    for row in rows:
        solution = Path(arguments.solutions) / f"{row['id']}.py" if arguments.solutions else None
        found = solution if solution is not None and solution.is_file() else None
        num_solved += found is not None
        export(row, arguments.out / name_of(row["id"]), found)
    print(f"{len(rows)} tasks in {arguments.out}, {num_solved} with a solution")
    return 0


if __name__ == "__main__":
    sys.exit(main())
