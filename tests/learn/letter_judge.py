# SPDX-License-Identifier: Apache-2.0
"""A verifier for tests: it reads questions and replies as `musacoder eval --stream` does.

An answer is right where at least half of its characters are of $LETTERS; the share of them is q.
Where the task's code says "infra" an answer is infra the first time that it is asked, and where it
says "always infra" every time.
"""

import json
import os
import sys

LETTERS = os.environ.get("LETTERS", "aeiou0123456789")
TELEMETRY = {
    "stages": [],
    "protections_off": [],
    "aten_ops": {},
    "reduction": {"native": {}, "used": {}, "reason": ""},
    "pytorch": "",
    "memory_peak_bytes": 0,
    "compile_cached": False,
    "compile_cpu_s": 0.0,
    "full_headers": [],
    "output_tail": "",
    "audits": [],
    "race_check": {"state": "off", "device": "", "reason": "", "seconds": 0.0},
    "state": {"missing": [], "unmatched": [], "own": []},
    "fixed_sizes": [],
}
PROTOCOL = {
    "policy": "musacoder/2",
    "dialect": "cuda",
    "musa_architecture": "",
    "language": "any",
    "trials": 5,
    "inputs": "varied",
    "shapes": True,
    "require_general": False,
    "mode": "train",
    "precision": "task",
    "tolerance_fp32": 1e-4,
    "tolerance_half": 1e-2,
    "timing": "none",
    "baseline": "",
    "compile_mode": "",
    "tf32": False,
    "strict": False,
    "race_check": False,
    "device": "",
}


def outcome_of(question: dict[str, object], answer: str, code: str) -> dict[str, object]:
    is_first = str(question["id"]).endswith(":0")
    if "always infra" in code or ("infra" in code and is_first):
        return {"kind": "infra", "message": "the test says so"}
    q = sum(letter in LETTERS for letter in answer) / max(1, len(answer))
    if q >= 0.5:
        return {"kind": "pass", "trials": [], "performance": None, "generality": 1.0}
    return {"kind": "wrong", "q": q, "specialised": False, "trials": []}


def main() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        answer, task = str(question["answer"]), question["task"]
        verdict = {
            "schema": "musacoder-verdict/13",
            "task": task["id"],
            "candidate": question["id"],
            "candidate_hash": "",
            "backend": "cpu",
            "seed": "0",
            "protocol": PROTOCOL,
            "task_grade": {"grade": "good", "reasons": []},
            "outcome": outcome_of(question, answer, task["code"]),
            "not_tried": [],
            "telemetry": TELEMETRY,
        }
        reply = {"id": question["id"], "feedback": "More letters.\n", "verdict": verdict}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
