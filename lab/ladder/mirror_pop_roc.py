#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which rule sees a generator whose log-probabilities are wrong: MirrorPop or the signed mean?

    musacoder-learn generate --model M --prompts tasks.jsonl --out answers.jsonl --samples 18 \\
        --logprobs --dtype bfloat16
    python3 lab/ladder/mirror_pop_roc.py --model M --prompts tasks.jsonl --answers answers.jsonl

No training: the answers' log-probabilities under bfloat16 are the generator's, those of the same
tokens under float32 (by transformers) the trainer's, so their drift is real. Of 5 % of the answers
the generator's are then corrupted, in one of three ways, and each rule ranks all answers by its own
mean: the area under the ROC curve is the chance that a corrupted answer ranks above an honest one.

    both signs   1 nat up or down, by a coin, on 5 % of the tokens
    one sign     1 nat up on 5 % of the tokens
    rounding     all of them rounded to bfloat16, whose last bit is 1/256 of the value
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

Rule = Callable[[list[float]], float]
SHARE = 0.05  # The corrupted answers, and the tokens of each that are.
NAT = 1.0
DELTA = 0.05  # The bound of MirrorPop.
RESAMPLES = 400

RULES: dict[str, Rule] = {
    "MirrorPop": lambda drift: sum(map(abs, drift)) / len(drift),
    "signed mean": lambda drift: abs(sum(drift)) / len(drift),
}


def rescored(folder: Path, prompts: list[str], answers: list[list[int]]) -> list[list[float]]:
    """Log-probabilities of the answers' tokens, in float32."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    known: dict[str, list[int]] = {}
    found = []
    for prompt, tokens in zip(prompts, answers, strict=True):
        if prompt not in known:
            known[prompt] = list(tokenizer.apply_chat_template(
                json.loads(prompt), add_generation_prompt=True)["input_ids"])  # fmt: skip
        first = known[prompt]
        with torch.no_grad():
            logits = model(torch.tensor([first + tokens])).logits[0, len(first) - 1 : -1]
        chosen = torch.log_softmax(logits.float(), -1)[range(len(tokens)), tokens]
        found.append(chosen.tolist())
    return found


def corrupted(kind: str, log_probs: list[float], draw: random.Random) -> list[float]:
    import torch

    if kind == "rounding":
        return list(torch.tensor(log_probs).to(torch.bfloat16).tolist())
    changed = list(log_probs)
    for place in draw.sample(range(len(changed)), max(1, round(SHARE * len(changed)))):
        sign = 1.0 if kind == "one sign" else draw.choice((1.0, -1.0))
        changed[place] += sign * NAT
    return changed


def area(wrong: list[float], right: list[float]) -> float:
    """The area under the ROC curve; equal ranks count half."""
    ranked = sorted([(one, 1) for one in wrong] + [(one, 0) for one in right])
    above = total = 0.0
    start = 0
    while start < len(ranked):
        end = start
        while end < len(ranked) and ranked[end][0] == ranked[start][0]:
            end += 1
        wrongs = sum(is_wrong for _, is_wrong in ranked[start:end])
        total += wrongs * (above + (end - start - wrongs) / 2)
        above += end - start - wrongs
        start = end
    return total / (len(wrong) * len(right))


def interval(wrong: list[float], right: list[float]) -> tuple[float, float]:
    draw = random.Random(0)
    areas = sorted(area(draw.choices(wrong, k=len(wrong)), draw.choices(right, k=len(right)))
                   for _ in range(RESAMPLES))  # fmt: skip
    return areas[int(0.025 * RESAMPLES)], areas[int(0.975 * RESAMPLES) - 1]


def line(kind: str, name: str, wrong: list[float], right: list[float]) -> str:
    low, high = interval(wrong, right)
    caught = sum(one > DELTA for one in wrong) / len(wrong)
    lost = sum(one > DELTA for one in right) / len(right)
    return (f"| {kind} | {name} | {area(wrong, right):.3f} [{low:.3f}, {high:.3f}] "
            f"| {100 * caught:.1f} % | {100 * lost:.1f} % |")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--prompts", type=Path, required=True)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    prompts = {row["id"]: json.dumps(row["prompt"])
               for row in map(json.loads, arguments.prompts.read_text().splitlines())}  # fmt: skip
    rows: list[dict[str, Any]] = list(map(json.loads, arguments.answers.read_text().splitlines()))
    rows = [row for row in rows if row["tokens"]]
    random.Random(arguments.seed).shuffle(rows)
    rows = rows[: arguments.limit]
    old = rescored(arguments.model, [prompts[row["id"]] for row in rows],
                   [row["tokens"] for row in rows])  # fmt: skip
    print(f"{len(rows)} answers of {sum(map(len, old)) / len(old):.0f} tokens on average\n")
    print(f"| corrupted | rule | area | corrupted beyond {DELTA} | honest beyond it |")
    print("|---|---|---|---|---|")
    for kind in ("both signs", "one sign", "rounding"):
        draw = random.Random(arguments.seed)
        chosen = set(draw.sample(range(len(rows)), round(SHARE * len(rows))))
        drifts = []
        for place, (row, known) in enumerate(zip(rows, old, strict=True)):
            reported = row["logprobs"][: len(known)]  # The end token is not counted.
            if place in chosen:
                reported = corrupted(kind, reported, draw)
            drifts.append([one - other for one, other in zip(known, reported, strict=True)])
        for name, rule in RULES.items():
            values = list(map(rule, drifts))
            wrong = [values[place] for place in sorted(chosen)]
            right = [one for place, one in enumerate(values) if place not in chosen]
            print(line(kind, name, wrong, right))


if __name__ == "__main__":
    main()
