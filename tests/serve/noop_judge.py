# SPDX-License-Identifier: Apache-2.0
"""A verifier for tests of what is around one: every answer passes, at once.

Answers that begin with "infra", "unsupported" or "fail" get that; "no task" is a task that is none;
"crash" ends this process; "slow" takes a second, and "never" does not end.

    noop_judge.py [seconds before it reads] [exit code: it cannot judge, and ends]
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

REWARDS = {"pass": 1.0, "wrong": -1.0, "infra": None, "unsupported": None}


def reply(question: dict[str, Any]) -> dict[str, Any]:
    if question.get("verb") == "about":
        return {"id": question["id"], "about": "no-op", "jobs": 1}
    if "answer" not in question:
        return {"id": question["id"], "error": 'a question needs "answer", a text'}
    answer = question["answer"]
    time.sleep(1 if answer.startswith("slow") else 3600 if answer.startswith("never") else 0)
    if answer.startswith("crash"):
        os._exit(3)
    if answer.startswith("no task"):
        return {"id": question["id"], "error": "no class Model"}
    kind = next((k for k in ("infra", "unsupported") if answer.startswith(k)), "pass")
    kind = "wrong" if answer.startswith("fail") else kind
    return {
        "id": question["id"],
        "reward": REWARDS[kind],
        "seconds": 0.0,
        "feedback": f"It is {kind}.",
        "verdict": {
            "task": str(question["task"]),
            "outcome": {"kind": kind},
            "protocol": {},
            "task_grade": {"grade": "good", "reasons": []},
        },
    }


time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
if len(sys.argv) > 2:
    print("noop judge: this machine cannot judge", file=sys.stderr)
    sys.exit(int(sys.argv[2]))
for line in sys.stdin:
    print(json.dumps(reply(json.loads(line))), flush=True)
