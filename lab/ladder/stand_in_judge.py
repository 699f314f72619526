#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verifiers of a known rule, for experiments with RL: nothing, a text, or a hidden block size.

musacoder rl ... --judge "python3 lab/ladder/stand_in_judge.py --like run-of-the-verifier"
musacoder rl ... --judge "python3 lab/ladder/stand_in_judge.py --pass-rate 0.35"
musacoder rl ... --judge "python3 lab/ladder/stand_in_judge.py --contains 64>>>"
musacoder rl ... --judge "python3 lab/ladder/stand_in_judge.py --hidden-blocks"

It speaks the protocol of `--judge` (docs/rl.md). Without --contains or --hidden-blocks the verdicts
say nothing: an answer passes or fails by a hash of the seed,
the task's code and the answer, at the given rate, so a run repeats whatever the order of answers. A
model that still gets better under it gains from something other than verdicts. Two things stay
true: an answer that was cut off fails before any verifier is asked, and the same answer to the same
task has the same verdict. --like takes the rate from a run's episodes: of the first turns that were
not cut off and have a score, the share that passed.

With --contains the verdict says one thing: an answer passes where it has that text. So the best
policy is known, and a curve shows how far a rule is from it.

With --hidden-blocks each task has a device of its own, which runs blocks of one size alone: one of
BLOCKS, by a hash of the task's code. Nothing in the task says which; the feedback on a failed
answer does. So feedback has information that the task does not have. --then COMMAND asks another
verifier, such as `musacoder eval --stream`, about the answers that fit their device.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/verdict.schema.json").read_text())
VERSION = SCHEMA["properties"]["schema"]["const"]
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


BLOCKS = (32, 64, 96, 128, 160, 192, 224, 256)
LAUNCHES = re.compile(r"<<<[^;]*?,\s*(\d+)\s*>>>")


def block_of(code: str) -> int:
    """The threads of a block that the device of the task with this code runs."""
    return BLOCKS[hashlib.sha256(code.encode()).digest()[0] % len(BLOCKS)]


def blocks_of(answer: str) -> list[int]:
    """The threads of a block of each launch."""
    return [int(found) for found in LAUNCHES.findall(answer)]


def fits(code: str, answer: str) -> bool:
    return set(blocks_of(answer)) == {block_of(code)}


BLOCKS_NAMED = "This device runs blocks of"


def feedback_on_blocks(code: str, answer: str) -> str:
    found = blocks_of(answer)
    launched = f"a block of {found[0]} threads" if found else "no launch with a number of threads"
    return f"Result: runtime: {launched}.\n{BLOCKS_NAMED} {block_of(code)} threads.\n"


def reply(
    question: dict[str, Any], seed: int, outcome: dict[str, Any], feedback: str
) -> dict[str, Any]:
    task = question["task"]
    verdict = {
        "schema": VERSION,
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
    return {"id": question["id"], "feedback": feedback, "verdict": verdict}


def rate_of(run: Path) -> float:
    scores: list[float] = []
    for line in (run / "episodes.jsonl").read_text(encoding="utf-8").splitlines():
        turn = json.loads(line)["turns"][0]
        if turn["stopped"] and turn["s"] is not None:
            scores.append(turn["s"])
    if not scores:
        sys.exit(f"stand_in_judge: {run} has no answer with a score; give --pass-rate")
    return sum(score >= SCORE_PASSED for score in scores) / len(scores)


class Next:
    """Another verifier, whose replies go out as they come."""

    def __init__(self, command: list[str]) -> None:
        self.child = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)  # fmt: skip
        self.reader = threading.Thread(target=self.pass_on)
        self.reader.start()

    def pass_on(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            say(line)

    def ask(self, line: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(line)
        self.child.stdin.flush()

    def end(self) -> int:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.reader.join()
        return self.child.wait()


OUT = threading.Lock()  # The lock of standard output, which two threads write to.


def say(line: str) -> None:
    with OUT:
        sys.stdout.write(line)
        sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--pass-rate", type=float, help="share of answers that pass")
    source.add_argument("--like", type=Path, help="a run's folder, for its share")
    source.add_argument(
        "--contains", metavar="TEXT", help="an answer passes where it has this text"
    )
    source.add_argument(
        "--hidden-blocks", action="store_true", help="it passes with its task's block size"
    )
    parser.add_argument(
        "--then",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="the verifier of those that fit, with its arguments, as the last option",
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rate = rate_of(arguments.like) if arguments.like else arguments.pass_rate
    then = Next(arguments.then) if arguments.then else None
    for line in sys.stdin:
        question = json.loads(line)
        answer, code = question["answer"], question["task"]["code"]
        feedback = "The result is wrong.\n"
        if arguments.hidden_blocks:
            is_right = fits(code, answer)
            feedback = feedback_on_blocks(code, answer)
        elif arguments.contains is not None:
            is_right = arguments.contains in answer
        else:
            is_right = passes(arguments.seed, code, answer, rate)
        if then and is_right:
            then.ask(line)
        else:
            outcome = PASSED if is_right else FAILED
            say(json.dumps(reply(question, arguments.seed, outcome, feedback)) + "\n")
    return then.end() if then else 0


if __name__ == "__main__":
    sys.exit(main())
