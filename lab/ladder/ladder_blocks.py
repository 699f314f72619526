# SPDX-License-Identifier: Apache-2.0
"""Data of the ladder's experiment H: the device of a task runs blocks of one hidden size.

The size is drawn by a hash of the task's code, so that nothing in the task says it, and the
feedback on a failed answer does (stand_in_judge.py). What a first model is fine-tuned on has
right kernels alone, with any size of block, and failed ones with their feedback, after which some
follow the feedback and others do not: a model that has seen repairs, and is no master of them.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

from stand_in_judge import BLOCKS, BLOCKS_NAMED, block_of, feedback_on_blocks  # noqa: E402

LAUNCH = re.compile(r"\(n \+ \d+\) / \d+, \d+>>>")
FOLLOWED = 0.4  # Share of the shown repairs that do what the feedback says.
SOLUTIONS = 3  # The solutions shown for a task, each with another random block size.


def with_block(answer: str, block: int) -> str:
    """The answer of a kernel with a thread for each element, launched with other blocks."""
    return LAUNCH.sub(f"(n + {block - 1}) / {block}, {block}>>>", answer)


def is_of_threads(row: dict[str, Any]) -> bool:
    """One launch, of a thread for each element: right for any size of block."""
    return bool(
        row["kind"] == "generation"
        and re.fullmatch(r"thread_\d+", row["provenance"]["template"])
        and row["messages"][-1]["content"].count("<<<") == 1
        and LAUNCH.search(row["messages"][-1]["content"])
    )


def shown_rows(rows: list[dict[str, Any]], codes: dict[str, str], seed: int) -> list[str]:
    """Lines to fine-tune on, from the forge's rows; `codes` are those of the tasks, by id."""
    draw = random.Random(seed)
    made = []
    seen = set()
    for row in filter(is_of_threads, rows):
        task = row["task"]
        if task in seen or task not in codes:
            continue
        seen.add(task)
        request, answer = (turn["content"] for turn in row["messages"])
        made += [line(task, [request, with_block(answer, draw.choice(BLOCKS))])
                 for _ in range(SOLUTIONS)]  # fmt: skip
        right = block_of(codes[task])
        failed = with_block(answer, draw.choice([one for one in BLOCKS if one != right]))
        feedback = feedback_on_blocks(codes[task], failed) + "Write the whole answer again.\n"
        # The two forms in which `rl` shows a failure: a turn, and within a prompt of its own.
        for turns in ([request, failed, feedback],
                      [f"{request}An answer that failed:\n{failed}\n{feedback}"]):  # fmt: skip
            block = right if draw.random() < FOLLOWED else draw.choice(BLOCKS)
            made.append(line(task, [*turns, with_block(answer, block)]))
    return made


def line(task: str, contents: list[str]) -> str:
    """A row of messages by turns, the user's first."""
    roles = ["user", "assistant"] * len(contents)
    messages = [{"role": role, "content": text} for role, text in zip(roles, contents)]
    return json.dumps({"kind": "blocks", "task": task, "messages": messages}) + "\n"
