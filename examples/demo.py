#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small example of the main job: one candidate of each kind, judged through the command line.

Writes honest candidates of the corpus, and mistakes and cheats derived from them, as a model's
answers (JSON Lines of task, sample, response). `musacoder eval` then prints the table and the
feedback that a model would get.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests/corpus"
MUSACODER = ROOT / "build/dev/bin/musacoder"

HONEST = ["reduction/row_sum", "softmax/softmax_rows", "matmul/tiled", "fusion/attention"]
# One mistake or cheat of each kind.
KINDS = [
    "missing_barrier",
    "unstable_softmax",
    "missing_boundary_check",
    "missing_semicolon",
    "null_pointer",
    "infinite_loop",
    "torch_op_in_forward",
    "no_model_new",
]


def answers() -> list[dict[str, str]]:
    texts = {name: (CORPUS / "honest" / f"{name}.py").read_text() for name in HONEST}
    chosen = [{"task": name, "sample": "honest", "response": text} for name, text in texts.items()]
    mutants = json.loads((CORPUS / "mutants.json").read_text())
    for kind in KINDS:
        mutant = next(mutant for mutant in mutants if mutant["kind"] == kind)
        text = (CORPUS / "honest" / f"{mutant['of']}.py").read_text()
        for edit in mutant["edits"]:
            text = text.replace(edit["find"], edit["replace"])
        chosen.append({"task": mutant["of"], "sample": kind, "response": text})
    return chosen


def main() -> int:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(answer) + "\n" for answer in answers())
        file.flush()
        command = [
            str(MUSACODER),
            "eval",
            "--candidate",
            file.name,
            "--jobs",
            "2",
            "--feedback",
            "--timeout",
            "5",
            *sys.argv[1:],
        ]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
