# SPDX-License-Identifier: Apache-2.0
"""A run of the document as a log of inspect-ai: `inspect view`, or its `read_eval_log`.

A sample is one conversation, its epoch the number of the sample.  Its score is C if an answer
passes, otherwise I; a sample without a score has an error instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

from report.document import BadDocument, Json

NAME = "musacoder"
_UNSCORED = ("infra", "unsupported")


def inspect_log(document: Json) -> str:
    if len(document["runs"]) != 1:
        raise BadDocument("--inspect is for one run: choose it with --run")
    (run,) = document["runs"]
    codes = {task["id"]: task["code"] for task in document["tasks"]}
    samples = list(_samples(run, codes))
    scored = [one["scores"][NAME]["value"] == "C" for one in samples if one["scores"]]
    figures: Json = {"accuracy": sum(scored) / len(scored)} if scored else {}
    metrics = {name: {"name": name, "value": value} for name, value in figures.items()}
    score = {"name": NAME, "scorer": NAME, "metrics": metrics, "scored_samples": len(scored),
             "unscored_samples": len(samples) - len(scored)}  # fmt: skip
    model = run["settings"].get("model")
    ids = sorted({one["id"] for one in samples})
    log = {
        "version": 2,
        "status": "success",
        "eval": {
            "created": document["created"],
            "task": document["title"],
            "dataset": {"name": run["name"], "samples": len(ids), "sample_ids": ids},
            "model": str(model.get("name") if isinstance(model, dict) else run["name"]),
            "config": {"epochs": max((one["epoch"] for one in samples), default=1)},
            "packages": {NAME: document["program"].rpartition(" ")[2]},
            "metadata": {"settings": run["settings"], "environment": run["environment"]},
        },
        "results": {"total_samples": len(samples), "completed_samples": len(scored),
                    "scores": [score]},
        "samples": samples,
    }  # fmt: skip
    return json.dumps(log, indent=1) + "\n"


def _samples(run: Json, codes: Json) -> Iterator[Json]:
    in_order = sorted(run["samples"], key=lambda one: (one["task"], one["sample"], one["turn"]))
    for (task, number), turns in groupby(in_order, lambda one: (one["task"], one["sample"])):
        code = codes.get(task, "")
        all_turns = list(turns)
        yield {
            "id": task,
            "epoch": number + 1,
            "input": code,
            "target": "",
            "messages": [{"role": "user", "content": code}, *_messages(all_turns)],
            **_end(all_turns),
        }


def _messages(turns: list[Json]) -> Iterator[Json]:
    for number, turn in enumerate(turns, 1):
        yield {"role": "assistant", "content": turn["answer"]}
        if number < len(turns):
            yield {"role": "user", "content": turn["feedback"]}


def _end(turns: list[Json]) -> Json:
    """The score of a conversation, or its error."""
    best = next((turn for turn in turns if turn["outcome"] == "pass"), turns[-1])
    outcome = best["outcome"]
    text = f"{outcome}: {best['phrase']}".strip(": ")
    if outcome in _UNSCORED:
        return {"scores": {}, "error": {"message": text, "traceback": "", "traceback_ansi": ""}}
    details = {name: best[name] for name in ("outcome", "stage", "turn", "reward", "time_us")}
    score = {"value": "C" if outcome == "pass" else "I", "answer": best["answer"]}
    speedup = best["speedup"]["value"] if best["speedup"] else None
    score |= {"explanation": text, "metadata": {**details, "speedup": speedup}}
    return {"scores": {NAME: score}}
