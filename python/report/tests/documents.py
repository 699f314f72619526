# SPDX-License-Identifier: Apache-2.0
"""Documents for tests: made from a seed, with verdicts of the form of docs/verdict.schema.json.

usage: python -m report.tests.documents RUNS TASKS > DOCUMENT.json

The answers are candidates of tests/corpus/kernelbench with other names and numbers in them. The
figures are drawn, not computed: they only look like those of a benchmark.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from report.document import OUTCOMES, Json

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs/verdict.schema.json").read_text())
VERSION = SCHEMA["properties"]["schema"]["const"]
STAGES = ("extraction", "legality", "compile", "runtime", "correctness")
FAILS_AT = {"extraction": 0, "illegal": 1, "compile": 2, "runtime": 3, "timeout": 3, "oom": 3,
            "wrong": 4}  # fmt: skip
FAMILIES = ("elementwise", "fusion", "matmul", "normalisation", "pooling", "reduction", "softmax")
NAMES = ("coder-32b-rl", "coder-32b", "coder-14b-rl", "coder-14b", "coder-7b-rl", "coder-7b",
         "frontier-a", "frontier-b")  # fmt: skip
CANDIDATE = '''import torch
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void add(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] += x[i];  // "a" < 'b' & c
}
"""
'''
PHRASES = {
    "pass": "8 of 8 trials agree",
    "wrong": "output: 131072 of 262144 elements differ, largest error 1.75 (tolerance 0.01)",
    "runtime": "RuntimeError in forward: expected 2 dimensions but got 1",
    "timeout": "forward took longer than 10 s",
    "oom": "forward needed more than 4 GiB",
    "compile": "cuda_sources[0]:14: expected ';' before '}' token",
    "illegal": "static.library_call: calls torch.matmul in forward",
    "extraction": "no_model_new: the module defines no ModelNew",
    "unsupported": "cpu.unsupported: wmma::load_matrix_sync",
    "infra": "the judge ended without a reply",
}


def location(line: int, excerpt: str) -> Json:
    return {"source": "cuda_sources[0]", "line": line, "column": 5, "excerpt": excerpt}


def trial(rng: random.Random, index: int, passed: bool) -> Json:
    check = {
        "path": "output", "problem": "value", "detail": "differs from row 128 on",
        "num_elements": 262144, "num_wrong": rng.randrange(1, 262144), "error_max": rng.random(),
        "error_tolerance": 0.01,
        "first_mismatches": [
            {"index": [128, n], "expected": f"{rng.random():.6f}", "got": "0.000000"}
            for n in range(8)
        ],
        "histogram": {f"1e{n}": rng.randrange(9999) for n in range(4)},
        "diagnosis": "All elements are zero.",
    }  # fmt: skip
    return {
        "index": index, "shape": "native" if index < 3 else "ragged", "distribution": "normal",
        "constants": {"batch_size": 128, "dim": 2048 + index},
        "inputs_digest": f"{rng.getrandbits(128):032x}",
        "passed": passed, "checks": [] if passed else [check], "findings": [],
        "inputs_mutated": "",
        "sectors": 0,
    }  # fmt: skip


def estimate(median: float) -> Json:
    return {"median": median, "low": median * 0.97, "high": median * 1.03}


def performance(speedup: float, time_us: float) -> Json:
    kernel = {
        "name": "_Z15fused_op_kernelPKfPfii", "owner": "candidate", "launches": 1.0,
        "time_us": time_us, "share": 1.0, "grid": [512, 1, 1], "block": [256, 1, 1],
        "registers": 32, "spill_bytes": 0, "shared_bytes": 4096, "occupancy": 0.75,
    }  # fmt: skip
    return {
        "speedup_eager": estimate(speedup), "speedup_compile": estimate(speedup * 0.8),
        "time_us": estimate(time_us), "time_eager_us": estimate(time_us * speedup),
        "time_compile_us": estimate(time_us * speedup * 0.8),
        "timing": {
            "mode": "enqueued", "cache": "inputs_cold", "batches": 20, "calls": 50,
            "calls_verified": 4, "tf32": False, "notes": ["The clocks were not fixed."],
            "clocks": {"sm_mhz_min": 1700, "sm_mhz_max": 1980, "memory_mhz": 2619,
                       "throttling": []},
        },
        "own_share": 1.0, "memory_bytes": 4 << 20, "memory_eager_bytes": 24 << 20,
        "kernels": [kernel],
        "floor": {"time_us": time_us * 0.6, "bound": "memory", "bytes": 2097152,
                  "operations": 1e7, "bandwidth_gbs": 2900.0, "peak_tflops": 60.0},
    }  # fmt: skip


def evidence(rng: random.Random, kind: str, speedup: float | None) -> Json:
    time_us = rng.uniform(8, 900)
    message = PHRASES[kind]
    place = location(14, "out[i] = x[i] + y[i]")
    finding = {"rule": message.split(":")[0], "message": message, "location": place}
    error = {"type": "RuntimeError", "message": message, "location": place, "frames": [place]}
    fields: dict[str, Json] = {
        "pass": {
            "trials": [trial(rng, n, True) for n in range(8)],
            "performance": performance(speedup, time_us) if speedup else None,
            "generality": 1.0,
        },
        "wrong": {"q": 0.4, "specialised": False,
                 "trials": [trial(rng, n, n > 2) for n in range(8)]},
        "runtime": {"stage": "forward", "exception": error, "signal": 0, "exit_code": 0,
                    "findings": [], "trials": [trial(rng, n, True) for n in range(8)]},
        "timeout": {"stage": "forward", "limit_s": 10.0, "findings": []},
        "oom": {"stage": "forward", "limit_bytes": 1 << 32},
        "compile": {"diagnostics": [
            {"severity": "error", "message": message, "location": place}]},
        "illegal": {"when": "static", "findings": [finding]},
        "extraction": {"reason": "no_model_new", "detail": message, "location": place},
        "unsupported": {"constructs": [finding]},
        "infra": {"message": message},
    }  # fmt: skip
    return {"kind": kind, **fields[kind]}


def verdict(rng: random.Random, task: str, candidate: str, outcome: Json) -> Json:
    is_timed = bool(outcome.get("performance"))
    stages = ("extract", "legality", "compile", "reference", "correctness")
    return {
        "schema": VERSION, "task": task, "candidate": candidate,
        "candidate_hash": f"{rng.getrandbits(256):064x}", "backend": "cuda" if is_timed else "cpu",
        "seed": str(rng.getrandbits(64)), "outcome": outcome,
        "task_grade": {"grade": "good", "reasons": []}, "not_tried": [],
        "protocol": {
            "policy": "musacoder/5", "dialect": "cuda", "musa_architecture": "", "language": "any",
            "trials": 3, "inputs": "varied", "shapes": True, "require_general": False,
            "mode": "train",
            "precision": "task", "tolerance_fp32": 0.0001, "tolerance_half": 0.01,
            "timing": "full" if is_timed else "none", "baseline": "eager" if is_timed else "",
            "compile_mode": "", "tf32": False, "strict": False, "race_check": False,
            "device": "",
        },
        "telemetry": {
            "stages": [{"stage": stage, "ms": round(rng.uniform(1, 900), 3)} for stage in stages],
            "protections_off": [], "aten_ops": {"aten::empty": 1, "aten::view": 2},
            "reduction": {"native": {"dim": 16384}, "used": {"dim": 2048}, "reason": "memory"},
            "pytorch": "2.11.0", "memory_peak_bytes": rng.randrange(1 << 30),
            "compile_cached": False,
            "compile_cpu_s": 4.5, "full_headers": [], "output_tail": "", "audits": [],
            "race_check": {"state": "off", "device": "", "reason": "", "seconds": 0.0},
            "state": {"missing": [], "unmatched": [], "own": []}, "fixed_sizes": [],
        },
    }  # fmt: skip


def figure(value: float, tasks: int) -> Json:
    low, high = max(value - 0.06, 0.0), min(value + 0.06, 1.0)
    return {"value": value, "low": low, "high": high, "tasks": tasks}


def figures(skill: float, tasks: int, samples: int) -> Json:
    return {
        "tasks": tasks, "answers": samples, "not_scored": 2, "missing": 1, "unsupported": {},
        "samples": samples, "passed": round(skill * samples),
        "pass_at": {"1": figure(skill, tasks), "4": figure(min(skill * 1.15, 1.0), tasks)},
        "average": figure(skill, tasks), "first_turn": figure(skill * 0.9, tasks),
        "best_turn": figure(min(skill * 1.1, 1.0), tasks),
        "fast": {p: figure(skill * share, tasks)
                 for p, share in (("0", 1.0), ("1", 0.6), ("1.5", 0.35), ("2", 0.2))},
        "faster_rate": figure(skill * 0.5, tasks),
        "faster_than_compiled": None,
        "uncertain": {"1": 2, "1.1": 3, "1.5": 0, "2": 0},
    }  # fmt: skip


class Maker:
    """Draws documents; the same seed gives the same document."""

    def __init__(self, seed: int, sources: list[str]) -> None:
        self.random = random.Random(seed)
        self.sources = sources

    def answer(self) -> str:
        """A candidate with one more function, renamed and with other numbers, in a fence."""
        rng = self.random
        source, more = rng.sample(self.sources, 2)
        source = re.sub(r"\bkernel\b", f"kernel_{rng.randrange(9999)}", source)
        source = re.sub(r"\b(128|256|512)\b", lambda m: str(int(m[1]) * rng.choice((1, 2))), source)
        source += "\n\n" + more[: rng.randrange(800, 2800)].replace("ModelNew", "Other")
        return f"The kernel fuses all of it.\n\n```python\n{source}\n```\n"

    def sample(self, task: Json, number: int, turn: int, skill: float) -> Json:
        rng = self.random
        chances = [skill, *([(1 - skill) / (len(OUTCOMES) - 1)] * (len(OUTCOMES) - 1))]
        outcome = rng.choices(list(OUTCOMES), chances)[0]
        is_pass = outcome == "pass"
        speedup = rng.lognormvariate(0.1, 0.8) if is_pass else None
        time_us = rng.uniform(8, 900)
        ends = speedup and {
            "value": speedup,
            "low": speedup * 0.97,
            "high": speedup * 1.03,
            "uncertain": any(speedup * 0.97 <= t <= speedup * 1.03 for t in (1, 1.1)),
        }
        result = evidence(rng, outcome, speedup)
        return {
            "task": task["id"], "sample": number, "turn": turn, "level": task["level"],
            "families": task["families"], "outcome": outcome, "pending": False,
            "q": 1.0 if is_pass else 0.4 if outcome == "wrong" else None,
            "stage": STAGES[FAILS_AT[outcome]] if outcome in FAILS_AT else "",
            "phrase": PHRASES[outcome], "reward": 1.1 if is_pass else -1.0,
            "seconds": rng.uniform(0.5, 9), "tokens": rng.randrange(900, 4000),
            "finish": "length" if outcome == "extraction" else "stop",
            "speedup": ends, "speedup_compile": ends,
            "sol_score": rng.betavariate(3, 3) if is_pass else None,
            "time_us": time_us if is_pass else None, "answer": self.answer(),
            "reasoning": "The rows are independent, so a block takes one row. " * 20,
            "feedback": f"Result: {outcome}.\n{PHRASES[outcome]}\n> out[i] = x[i] + y[i]\n" * 6,
            "verdict": verdict(rng, task["id"], f"{task['id']}#{number}", result),
        }  # fmt: skip

    def run(self, name: str, skill: float, tasks: list[Json], turns: int) -> Json:
        samples = [self.sample(task, 0, turn, skill) for task in tasks for turn in range(turns)]
        outcomes = {name: sum(s["outcome"] == name for s in samples) for name in OUTCOMES}
        funnel, reached = [], len(samples)
        for position, stage in enumerate(STAGES):
            failed = sum(n for kind, n in outcomes.items() if FAILS_AT.get(kind) == position)
            funnel.append({"stage": stage, "reached": reached, "failed": failed})
            reached -= failed
        speedups = [s["speedup"]["value"] for s in samples if s["speedup"]]
        groups = {"all": figures(skill, len(tasks), len(samples))}
        for key in ("level", "family"):
            for value in sorted(
                {t["level"] if key == "level" else t["families"][0] for t in tasks}
            ):
                drawn = min(max(skill + self.random.uniform(-0.2, 0.2), 0), 1)
                groups[f"{key} {value}"] = figures(drawn, 20, 20)
        return {
            "name": name,
            "settings": {"suite": "KernelBench", "samples": 1, "temperature": 0.8,
                         "model": {"name": name, "max_tokens": 8192}, "policy": "musacoder/5"},
            "environment": {"backend": "cuda", "pytorch": "2.11.0"}, "groups": groups,
            "fast_curve": [[p / 20, sum(s > p / 20 for s in speedups) / len(samples)]
                           for p in range(101)] if samples else [],
            "wanted": len(tasks) + 1, "judged": len(tasks), "missing": 1,
            "unfinished": f"unfinished: {len(tasks)} of {len(tasks) + 1} samples",
            "cut": outcomes["extraction"], "outcomes": outcomes, "funnel": funnel,
            "tokens": {"prompt": 210_000, "completion": 1_400_000, "reasoning": 600_000},
            "cost": 12.5 if skill > 0.5 else None, "samples": samples,
            "turns": [{"turn": turn, "answers": len(tasks), "passed": sum(
                s["turn"] == turn and s["outcome"] == "pass" for s in samples)}
                for turn in range(turns)],
        }  # fmt: skip

    def document(self, num_runs: int, num_tasks: int, turns: int = 1) -> Json:
        tasks = [
            {"id": f"kernelbench:{n % 3 + 1}/{n // 3 + 1}", "level": str(n % 3 + 1),
             "families": [FAMILIES[n % len(FAMILIES)]], "sol_us": 4.0 + n,
             "code": self.sources[n % len(self.sources)]}
            for n in range(num_tasks)
        ]  # fmt: skip
        skills = [0.78 - 0.07 * n for n in range(num_runs)]
        runs = [self.run(NAMES[n], skill, tasks, turns) for n, skill in enumerate(skills)]
        self.random.shuffle(runs)
        pairs = [(a, b) for b in range(num_runs) for a in range(b)]
        differences = [self.random.uniform(-0.3, 0.3) for _ in pairs]
        paired = [
            {"a": a, "b": b, "tasks": num_tasks, "better": 40, "worse": 22, "a_value": 0.5,
             "b_value": 0.5 + d, "difference": d, "low": d - 0.08, "high": d + 0.08}
            for (a, b), d in zip(pairs, differences)
        ]  # fmt: skip
        return {"schema": 3, "title": "KernelBench, levels 1 to 3", "program": "musacoder 0.1.0",
                "created": "2026-01-02T03:04:05Z", "runs": runs, "tasks": tasks,
                "paired": paired}  # fmt: skip


def every_outcome() -> Json:
    """Two runs of two turns in which each outcome occurs."""
    maker = Maker(1, [CANDIDATE] * 2)
    document = maker.document(2, len(OUTCOMES), turns=2)
    for run in document["runs"]:
        for number, sample in enumerate(run["samples"]):
            kind = list(OUTCOMES)[number % len(OUTCOMES)]
            speedup = 1.52 if kind == "pass" else None
            result = evidence(maker.random, kind, speedup)
            sample.update(outcome=kind, phrase=PHRASES[kind], answer=maker.answer())
            sample.update(verdict=verdict(maker.random, sample["task"], "a#0", result))
    return document


if __name__ == "__main__":
    folder = ROOT / "tests/corpus/kernelbench"
    texts = [path.read_text() for path in sorted(folder.glob("level*/*.py"))]
    json.dump(Maker(7, texts).document(int(sys.argv[1]), int(sys.argv[2])), sys.stdout)
