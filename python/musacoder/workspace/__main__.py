# SPDX-License-Identifier: Apache-2.0
"""Makes a folder in which an agent writes one kernel, or judges what is in one.

`musacoder workspace` starts this file by its path (src/cli/workspace.cc).

    TASK.md, task.py   the request, and the program
    judge              the agent's command; .workspace/ belongs to it
    answer/            the agent's own: answer.py and any number of C++ and CUDA files

All files outside answer/ are protected: if they were changed, ./judge refuses to work. An agent can
change the judge, too. So --judge writes nothing and trusts only answer/: it compares the protected
files with those that this program would write.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from musacoder.workspace import judge  # noqa: E402

HERE = Path(__file__).resolve().parent
PLACE = """
The answer is in this folder: `answer/answer.py` defines `ModelNew` and compiles the C++ and CUDA
files beside it by `load(name=..., sources=[...])` or `load_inline`; headers may be in folders
there. Change nothing outside of `answer/`. `./judge` judges it and prints feedback.
"""


def rows_of(program: str, suite: str) -> list[dict[str, Any]]:
    """The tasks of a suite with their prompts. Raises judge.Refused."""
    command = [program, "task", "list", "--json", "--", suite]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise judge.Refused(listed.stderr.strip().removeprefix("musacoder: "))
    return [json.loads(line) for line in listed.stdout.splitlines()]


def row_of(program: str, task: str) -> dict[str, Any]:
    """One task: a file, or a name of the project's tasks or of KernelBench's."""
    if task.endswith(".py"):
        with tempfile.TemporaryDirectory() as folder:
            try:
                shutil.copyfile(task, Path(folder) / Path(task).name)
            except OSError as error:
                raise judge.Refused(f"{task}: {error.strerror}") from None
            rows = rows_of(program, folder)
    else:
        suite = "kernelbench" if task.startswith("kernelbench") else "tasks"
        rows = [row for row in rows_of(program, suite) if row["id"] == task]
    if not rows:
        raise judge.Refused(f"there is no task {task}: musacoder task list tasks shows them")
    return rows[0]


def write_protected(row: dict[str, Any], folder: Path) -> dict[str, str]:
    """Writes all files outside answer/ and returns their hashes."""
    (folder / ".workspace").mkdir(parents=True)
    asked = "\n\n".join(message["content"] for message in row["prompt"])
    (folder / "TASK.md").write_text(asked + PLACE, encoding="utf-8")
    (folder / "task.py").write_text(row["code"], encoding="utf-8")
    shutil.copyfile(HERE / "judge.py", folder / "judge")
    (folder / "judge").chmod(0o755)
    shutil.copyfile(HERE.parent / "harbor/judge.py", folder / ".workspace/service.py")
    names = ["TASK.md", "task.py", "judge", ".workspace/service.py"]
    hashes = {name: judge.hash_of(folder / name) for name in names}
    (folder / judge.MANIFEST).write_text(json.dumps(hashes, indent=1) + "\n")
    return {**hashes, judge.MANIFEST: judge.hash_of(folder / judge.MANIFEST)}


def make(row: dict[str, Any], folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise judge.Refused(f"{folder} is not empty")
    write_protected(row, folder)
    shutil.copytree(HERE / "skeleton", folder / "answer", ignore=shutil.ignore_patterns("__*"))
    print(f"{folder}: {row['id']}; the agent changes answer/ and calls ./judge")


def judge_answer(program: str, row: dict[str, Any], folder: Path) -> int:
    """Judges the folder's answer in a fresh workspace, from which the folder must not differ."""
    with tempfile.TemporaryDirectory() as place:
        fresh = Path(place) / "workspace"
        judge.require_unchanged(folder, write_protected(row, fresh))
        if (folder / "answer").is_symlink():
            raise judge.Refused("answer: a link is not judged")
        shutil.copytree(folder / "answer", fresh / "answer", symlinks=True)
        os.environ.setdefault("MUSACODER", program)
        return judge.judge(fresh)


def main() -> int:
    parser = argparse.ArgumentParser(prog="musacoder workspace")
    parser.add_argument("--program", required=True)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("task")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    try:
        row = row_of(arguments.program, arguments.task)
        if arguments.judge:
            return judge_answer(arguments.program, row, arguments.folder)
        make(row, arguments.folder)
        return judge.PASSES
    except (judge.Refused, OSError) as error:
        print(f"musacoder: {error}", file=sys.stderr)
        return judge.BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
