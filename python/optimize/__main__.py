# SPDX-License-Identifier: Apache-2.0
"""python -m optimize task MODULE.py …, or write TASK.py …: what `musacoder optimize` calls.

The answer is one JSON object on standard output: {"name", "task"} or {"module", "patch"}, or
{"error"}, which is for the user.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from optimize.module_text import Json, module_text
from optimize.patch import patch_of
from optimize.task_text import BadModule, Wanted, task_text


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="optimize")
    commands = parser.add_subparsers(dest="command", required=True)
    task = commands.add_parser("task")
    task.add_argument("module", type=Path)
    for option in ("--class", "--init", "--inputs"):
        task.add_argument(option, default="", dest=option.strip("-") + "_")
    write = commands.add_parser("write")
    write.add_argument("task", type=Path)
    write.add_argument("candidate", type=Path)
    write.add_argument("verdict", type=Path)
    write.add_argument("--class", default="Model", dest="class_")
    write.add_argument("--original", type=Path, required=True)
    options = parser.parse_args(arguments)
    answer = _task(options) if options.command == "task" else _written(options)
    print(json.dumps(answer))


def _task(options: argparse.Namespace) -> Json:
    try:
        wanted = Wanted(options.class_, options.init_, options.inputs_)
        text, name = task_text(options.module, wanted)
    except (BadModule, OSError, UnicodeDecodeError) as error:
        return {"error": f"{options.module}: {error}"}
    return {"name": name, "task": text}


def _written(options: argparse.Namespace) -> Json:
    texts = [path.read_text(encoding="utf-8") for path in (options.task, options.candidate)]
    verdict = json.loads(options.verdict.read_text(encoding="utf-8"))
    module = module_text(texts[0], options.class_, texts[1], verdict)
    return {"module": module, "patch": patch_of(options.original, module)}


if __name__ == "__main__":
    main(sys.argv[1:])
