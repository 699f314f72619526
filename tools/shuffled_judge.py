#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A verifier whose verdicts say nothing: the control of an experiment with RL.

musacoder rl ... --judge "python3 tools/shuffled_judge.py --like run-of-the-verifier"
musacoder rl ... --judge "python3 tools/shuffled_judge.py --pass-rate 0.35"
musacoder rl ... --judge "python3 tools/shuffled_judge.py --contains 64>>>"

It speaks the protocol of `--judge` (docs/rl.md). An answer passes or fails by a hash of the seed,
the task's code and the answer, at the given rate, so a run repeats whatever the order of answers. A
model that still gets better under it gains from something other than verdicts. Two things stay
true: an answer that was cut off fails before any verifier is asked, and the same answer to the same
task has the same verdict. --like takes the rate from a run's episodes: of the first turns that were
not cut off and have a score, the share that passed.

With --contains the verdict says one thing: an answer passes where it has that text. So the best
policy is known, and a curve shows how far a rule is from it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

SCORE_PASSED = 1.0
TELEMETRY: dict[str, Any] = {
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
PROTOCOL: dict[str, Any] = {
    "policy": "shuffled",
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
PASSED: dict[str, Any] = {"kind": "pass", "trials": [], "performance": None, "generality": 1.0}
FAILED: dict[str, Any] = {"kind": "wrong", "q": 0.0, "specialised": False, "trials": []}


def passes(seed: int, code: str, answer: str, rate: float) -> bool:
    digest = hashlib.sha256(json.dumps([seed, code, answer]).encode()).digest()
    return int.from_bytes(digest[:8], "big") < rate * 2**64


def reply(question: dict[str, Any], seed: int, is_right: bool) -> dict[str, Any]:
    task = question["task"]
    outcome = PASSED if is_right else FAILED
    verdict = {
        "schema": "musacoder-verdict/13",
        "task": task["id"],
        "candidate": question["id"],
        "candidate_hash": "",
        "backend": "cpu",
        "seed": str(seed),
        "protocol": PROTOCOL,
        "task_grade": {"grade": "good", "reasons": []},
        "outcome": outcome,
        "not_tried": [],
        "telemetry": TELEMETRY,
    }
    return {"id": question["id"], "feedback": "The result is wrong.\n", "verdict": verdict}


def rate_of(run: Path) -> float:
    scores: list[float] = []
    for line in (run / "episodes.jsonl").read_text(encoding="utf-8").splitlines():
        turn = json.loads(line)["turns"][0]
        if turn["stopped"] and turn["s"] is not None:
            scores.append(turn["s"])
    if not scores:
        sys.exit(f"shuffled_judge: {run} has no answer with a score; give --pass-rate")
    return sum(score >= SCORE_PASSED for score in scores) / len(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--pass-rate", type=float, help="share of answers that pass")
    source.add_argument("--like", type=Path, help="a run's folder, for its share")
    source.add_argument(
        "--contains", metavar="TEXT", help="an answer passes where it has this text"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rate = rate_of(arguments.like) if arguments.like else arguments.pass_rate
    for line in sys.stdin:
        question = json.loads(line)
        answer = question["answer"]
        if arguments.contains is not None:
            is_right = arguments.contains in answer
        else:
            is_right = passes(arguments.seed, question["task"]["code"], answer, rate)
        print(json.dumps(reply(question, arguments.seed, is_right)), flush=True)


if __name__ == "__main__":
    main()
