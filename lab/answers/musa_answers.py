#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges answers that ran on an MTT S4000, and compares the verdicts with the results there.

The answers are those of a public repository, of which nothing is here:
github.com/Young-Lord/KernelBench, 100 MUSA answers to KernelBench's level 1.  Give a checkout.
Its harness has a loader of its own, so the call of the loader alone is rewritten: the source is
`musa_sources` of torch_musa's load_inline, with the bindings that the other loader adds.

Prints a line for each answer that is judged otherwise than on the S4000.  Two rules of MooreEval
that the other harness lacks are named: an answer must not write to its inputs, and PyTorch's
operators may not compute for it.  The exit code is 1 where fewer than 95 of 100 are judged as there
or otherwise by one of these rules.

usage: lab/answers/musa_answers.py --musacoder build/dev/bin/musacoder [--only 7] CHECKOUT
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lab/gpu")]

from corpus_sets import PASS, Case  # noqa: E402
from expectation import Json  # noqa: E402
from judging import Judge, end_with_children, seed_of  # noqa: E402
from real_answers import description_of  # noqa: E402

ANSWERS = "KernelBench/level1_musa"
RESULTS = "deepseek_api_level1_musa_s4000_baseline/eval_results.json"
THEIR_IMPORT = "from kernelbench.musa_extension import load_inline"
IMPORT = "from torch_musa.utils.musa_extension import load_inline"
OPTIONS = ("--backend", "cpu", "--dialect", "musa", "--musa-arch", "mp_22", "--timeout", "60")
SHARE = 0.95


def bindings_of(functions: Sequence[str]) -> str:
    lines = [f'm.def("{name}", &{name}, "{name}");' for name in functions]
    return "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { " + " ".join(lines) + " }\n"


def rewritten(module: str) -> str:
    """The answer as torch_musa builds it; every line keeps its number."""
    calls = [
        node
        for node in ast.walk(ast.parse(module))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "load_inline"
    ]
    lines = module.splitlines(keepends=True)
    for call in calls:
        given = {keyword.arg: keyword for keyword in call.keywords}
        bindings = repr(bindings_of(ast.literal_eval(given["functions"].value)))
        source = given["cpp_sources"]
        start, value = source.lineno - 1, ast.unparse(source.value)
        assert lines[start].strip() == f"cpp_sources={value},", lines[start]
        lines[start] = (
            f'    cpp_sources="", musa_sources=[{value} + {bindings}], '
            'extra_musa_cflags=["--offload-arch=mp_22"],\n'
        )
        functions = given["functions"].value
        assert functions.end_lineno is not None
        for i in range(functions.lineno - 1, functions.end_lineno):
            lines[i] = "\n"
    text = "".join(lines)
    assert calls and text.count(THEIR_IMPORT) == 1
    return text.replace(THEIR_IMPORT, IMPORT)


def cases_of(checkout: Path, only: Sequence[int]) -> dict[int, Case]:
    cases = {}
    for number in range(1, 101):
        if only and number not in only:
            continue
        text = (checkout / ANSWERS / f"problem_{number}" / "model_new.py").read_text()
        response = f"```python\n{rewritten(text)}\n```\n"
        cases[number] = Case(str(number), f"kernelbench:1/{number}", response, PASS)
    return cases


def rule_of(outcome: Json) -> str:
    """The rule that the other harness does not have, or ""."""
    if any(trial["inputs_mutated"] for trial in outcome.get("trials", [])):
        return "writes to its inputs"
    rules = {finding.get("rule") for finding in outcome.get("findings", [])}
    return "PyTorch computes" if rules == {"link.torch_compute"} else ""


def compare(numbers: Sequence[int], was_right: Json, results: Sequence[Json | None]) -> int:
    counts: collections.Counter[str] = collections.Counter()
    rules: collections.Counter[str] = collections.Counter()
    num_same = 0
    for number, result in zip(numbers, results, strict=True):
        outcome = result["verdict"]["outcome"] if result else {"kind": "not judged"}
        counts[outcome["kind"]] += 1
        is_right = bool(was_right[str(number)][0]["correctness"])
        if is_right == (outcome["kind"] == "pass"):
            num_same += 1
            continue
        there = "right" if is_right else "wrong"
        rule = rule_of(outcome)
        rules[rule] += 1
        described = description_of(outcome) if result else "not judged"
        print(f"  {number}: {there} on the S4000; {f'[{rule}] ' if rule else ''}{described}")
    num_others = rules.pop("", 0)
    print(f"{num_same} of {len(numbers)} as on the S4000, {dict(sorted(counts.items()))}")
    print(f"otherwise by a rule: {dict(sorted(rules.items()))}; otherwise: {num_others}")
    return 0 if num_same + rules.total() >= SHARE * len(numbers) else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--musacoder", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, nargs="+", default=[], help="numbers of problems")
    parser.add_argument("--seed", type=int, help="of all inputs (default: another in each run)")
    parser.add_argument("--keep", type=Path, help="write the results to this file")
    parser.add_argument("checkout", type=Path)
    given = parser.parse_args()
    end_with_children()
    os.environ["MC_KERNELBENCH"] = str(given.checkout)
    cases = cases_of(given.checkout, given.only)
    judge = Judge(given.musacoder, given.jobs, (*OPTIONS, "--seed", seed_of(given.seed)))
    results = judge.results(list(cases.values()))
    if given.keep:
        given.keep.write_text("".join(json.dumps(one) + "\n" for one in results if one))
    was_right = json.loads((given.checkout / RESULTS).read_text())
    return compare(list(cases), was_right, results)


if __name__ == "__main__":
    sys.exit(main())
