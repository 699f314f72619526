# SPDX-License-Identifier: Apache-2.0
"""A verifier for tests: it reads questions and replies as `musacoder eval --stream` does.

An answer is right where at least half of its characters are of $LETTERS; the share of them is q.
Where the task's code says "infra" an answer is infra the first time that it is asked, and where it
says "always infra" every time.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab/ladder"))

from stand_in_judge import FAILED, PASSED, reply  # noqa: E402

LETTERS = os.environ.get("LETTERS", "aeiou0123456789")


def outcome_of(question: dict[str, object], answer: str, code: str) -> dict[str, object]:
    is_first = str(question["id"]).endswith(":0")
    if "always infra" in code or ("infra" in code and is_first):
        return {"kind": "infra", "message": "the test says so"}
    q = sum(letter in LETTERS for letter in answer) / max(1, len(answer))
    if q >= 0.5:
        return PASSED
    return {**FAILED, "q": q}


def main() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        answer, task = str(question["answer"]), question["task"]
        outcome = outcome_of(question, answer, task["code"])
        print(json.dumps(reply(question, 0, outcome, "More letters.\n")), flush=True)


if __name__ == "__main__":
    main()
