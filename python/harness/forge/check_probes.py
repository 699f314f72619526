# SPDX-License-Identifier: Apache-2.0
"""Compares the forge's interpreter with PyTorch: a line of {"source", "probe"} for each task.

Prints what differs; the exit code is 1 then. Run by src/forge/interpret_test.cc.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path[:] = [str(Path(__file__).resolve().parent.parent.parent)] + sys.path[1:]

from harness.forge.gate import complaints_of_probe  # noqa: E402
from harness.judge.task import Task  # noqa: E402


def main() -> int:
    num_wrong = 0
    for line in Path(sys.argv[1]).read_text().splitlines():
        entry = json.loads(line)
        for complaint in complaints_of_probe(Task(entry["source"]), entry["probe"]):
            print(complaint, entry["source"], sep="\n", file=sys.stderr)
            num_wrong += 1
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
