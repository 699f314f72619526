# SPDX-License-Identifier: Apache-2.0
"""The document of a report: its form, and reading it.

`musacoder report` writes the document; docs/bench.md defines its figures. Texts in it were written
by models, so `load` makes each one safe to show: no text reaches a page with a control character,
half of a surrogate pair, or a character that reverses the direction of writing. Escaping is left
to the format that is written.

The shapes below list the members. These members need an explanation:

- `tasks[].sol_us`: the device's bound for the task in µs; null where nothing was timed.
- `paired[]`: two runs with tasks in common; `a` and `b` are their places in `runs`, `better` and
  `worse` count tasks, `difference` is b less a.
- `runs[].name`: as in the store; a number is added to a name that is there twice.
- `runs[].groups`: the figures of `all`, of each level and of each family, as in `summary.json`.
- `runs[].fast_curve`: pairs of p and fast_p at each speed-up that occurs; empty where a pass was
  not timed.
- `runs[].wanted`, `judged`, `missing`, `unfinished`: the samples that the run is to have, those
  with all their verdicts, those without an answer, and a sentence about the difference, or "".
- `runs[].cut`: answers that ended at `--max-tokens`.
- `runs[].tokens`, `cost`: `prompt`, `completion`, `reasoning` in sum; dollars by `--prices`, or
  null.
- `runs[].funnel`: for each stage, how many verdicts reached it and failed there; without
  `unsupported` and `infra`.
- `runs[].samples[]`: a verdict each; `pending` is true if another turn of the sample is to come,
  `phrase` is the finding in a line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Json = Any  # A value that JSON has, checked against a shape below.

SCHEMA = 3
TEXT_CHARACTERS_MAX = 100_000  # Longer texts are cut, with a note.

# Each outcome with its one-character symbol and its meaning.
OUTCOMES = {
    "pass": ("✓", "every trial that counts agrees"),
    "wrong": ("≠", "ran, and not every trial agrees"),
    "runtime": ("!", "an exception, a fatal signal or a fatal kernel finding"),
    "timeout": ("T", "longer than its limit"),
    "oom": ("M", "more memory than its limit"),
    "compile": ("C", "the native source does not compile"),
    "illegal": ("§", "does what the policy forbids"),
    "extraction": ("?", "no module in the answer"),
    "unsupported": ("U", "the backend lacks something; not scored"),
    "infra": ("–", "the machine failed; not scored"),
}

# ---- Shapes -------------------------------------------------------------------------------------
# A shape is a type; (shape, None) for a nullable value; [shape] for a list; {str: shape} for a map;
# a dict of names for an object.

FIGURE = ({"value": float, "low": float, "high": float, "tasks": int}, None)
FIGURES = {
    **dict.fromkeys(("tasks", "answers", "not_scored", "missing", "samples", "passed"), int),
    **dict.fromkeys(
        ("average", "first_turn", "best_turn", "faster_rate", "faster_than_compiled"), FIGURE
    ),
    **dict.fromkeys(("pass_at", "fast"), {str: FIGURE}),
    "uncertain": {str: int},
}
SPEEDUP = ({"value": float, "low": float, "high": float, "uncertain": bool}, None)
# The reader of verdicts, docs/verdict.schema.json, has checked the rest of a verdict.
VERDICT = {"outcome": {"kind": str}, "telemetry": {str: object}}
SAMPLE = {
    **dict.fromkeys(("task", "outcome", "stage", "phrase", "finish"), str),
    **dict.fromkeys(("answer", "reasoning", "feedback"), str),
    **dict.fromkeys(("sample", "turn"), int),
    "pending": bool,
    **dict.fromkeys(("q", "reward", "seconds", "tokens", "sol_score", "time_us"), (float, None)),
    **dict.fromkeys(("speedup", "speedup_compile"), SPEEDUP),
    "level": object,
    "families": [str],
    "verdict": VERDICT,
}
RUN = {
    **dict.fromkeys(("name", "unfinished"), str),
    **dict.fromkeys(("settings", "environment"), {str: object}),
    "groups": {str: FIGURES},
    "fast_curve": [[float]],
    **dict.fromkeys(("wanted", "judged", "missing", "cut"), int),
    **dict.fromkeys(("tokens", "outcomes"), {str: int}),
    "cost": (float, None),
    "funnel": [{"stage": str, "reached": int, "failed": int}],
    "turns": [{"turn": int, "answers": int, "passed": int}],
    "samples": [SAMPLE],
}
TASK = {"id": str, "level": object, "families": [str], "code": str, "sol_us": (float, None)}
PAIR = {
    **dict.fromkeys(("a", "b", "tasks", "better", "worse"), int),
    **dict.fromkeys(("a_value", "b_value", "difference", "low", "high"), float),
}
DOCUMENT = {
    "schema": int,
    **dict.fromkeys(("title", "created", "program"), str),
    "runs": [RUN],
    "tasks": [TASK],
    "paired": [PAIR],
}

NAMES = {dict: "an object", list: "a list", str: "a text", int: "an integer", float: "a number",
         bool: "true or false"}  # fmt: skip


class BadDocument(Exception):
    """The document is not of the form above; the message is one line."""


def check(value: Json, shape: Any, path: str) -> None:
    """Raises BadDocument with the path of the first value that is not of its shape."""
    if isinstance(shape, tuple):
        if value is not None:
            check(value, shape[0], path)
        return
    kind = shape if isinstance(shape, type) else type(shape)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind in (int, float)):
        raise BadDocument(f"{path}: not {NAMES[kind]}")
    if isinstance(shape, list):
        for index, one in enumerate(value):
            check(one, shape[0], f"{path}[{index}]")
    elif isinstance(shape, dict) and str in shape:
        for name, one in value.items():
            check(one, shape[str], f"{path}.{name}")
    elif isinstance(shape, dict):
        for name, inner in shape.items():
            if name not in value:
                raise BadDocument(f"{path}.{name}: missing")
            check(value[name], inner, f"{path}.{name}")


# ---- Hostile text -------------------------------------------------------------------------------

_UNSAFE = re.compile(
    "\r\n?|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


def _visible(match: re.Match[str]) -> str:
    character = match.group()
    if character[0] == "\r":
        return "\n"
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    return chr(0x2400 + ord(character)) if character < " " else f"<U+{ord(character):04X}>"


def clean(value: Json) -> Json:
    """The same value with texts that are safe to show, none longer than TEXT_CHARACTERS_MAX."""
    if isinstance(value, str):
        left_out = len(value) - TEXT_CHARACTERS_MAX
        if left_out > 0:
            note = f"\n[… {left_out} more characters are left out here.]"
            value = value[:TEXT_CHARACTERS_MAX] + note
        return _UNSAFE.sub(_visible, value)
    if isinstance(value, list):
        return [clean(one) for one in value]
    if isinstance(value, dict):
        return {clean(name): clean(one) for name, one in value.items()}
    return value


# ---- Reading ------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def parse(text: str) -> Json:
    """A checked and cleaned document. Raises BadDocument."""
    try:
        document = clean(json.loads(text, parse_constant=_refuse_constant))
    except RecursionError:
        raise BadDocument("nested too deeply") from None
    except ValueError as error:
        raise BadDocument(f"not JSON: {error}") from None
    check(document, {"schema": int}, "document")
    if document["schema"] != SCHEMA:
        raise BadDocument(f"schema: expected {SCHEMA}, got {document['schema']}")
    check(document, DOCUMENT, "document")
    for index, pair in enumerate(document["paired"]):
        if not all(0 <= pair[side] < len(document["runs"]) for side in "ab"):
            raise BadDocument(f"document.paired[{index}]: no such run")
    for index, run in enumerate(document["runs"]):
        for position, sample in enumerate(run["samples"]):
            if sample["outcome"] not in OUTCOMES:
                raise BadDocument(
                    f"document.runs[{index}].samples[{position}].outcome: no such outcome"
                )
        if any(len(point) != 2 for point in run["fast_curve"]):
            raise BadDocument(f"document.runs[{index}].fast_curve: a point is not a pair")
    return document


def load(path: Path) -> Json:
    """The document of a file. Raises BadDocument, also for a file that cannot be read."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadDocument(error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise BadDocument("not UTF-8") from None


def findings_of(verdict: Json) -> list[str]:
    """The kinds of the findings, each once: a race, a rule, an exception, a wrong value."""
    outcome = verdict["outcome"]
    trials = outcome.get("trials") or []
    kinds = [
        one.get("kind") or one.get("rule") or ""
        for found in (outcome, *trials)
        for member in ("findings", "constructs")
        for one in found.get(member) or []
    ]
    kinds += [check["problem"] for trial in trials for check in trial.get("checks") or []]
    kinds.append((outcome.get("exception") or {}).get("type", ""))
    return sorted({kind.replace(" ", "_") for kind in kinds if kind})


# ---- Figures ------------------------------------------------------------------------------------

Column = tuple[str, str, str]  # The heading, the member of a group's figures, a key in it or "".


def columns(runs: list[Json]) -> list[Column]:
    """The figures that at least one of the runs has, in the order of docs/bench.md."""
    groups = [group for run in runs for group in run["groups"].values()]
    num_turns = max((len(run["turns"]) for run in runs), default=0)

    def keys(member: str) -> list[str]:
        return sorted({key for group in groups for key in group[member]}, key=float)

    found: list[Column] = [
        *((f"Pass@{k}", "pass_at", k) for k in keys("pass_at")),
        ("Avg", "average", ""),
        *((f"fast_{p}", "fast", p) for p in keys("fast") if float(p) > 0),  # fast_0 is Avg.
        ("Faster Rate", "faster_rate", ""),
        ("Faster Rate over torch.compile", "faster_than_compiled", ""),
        *(
            (("First turn", "first_turn", ""), ("Best turn", "best_turn", ""))
            if num_turns > 1
            else ()
        ),
    ]
    return [column for column in found if any(figure(group, column) for group in groups)]


def figure(group: Json, column: Column) -> Json:
    """The {value, low, high, tasks} of a column, or None."""
    _, member, key = column
    return group[member].get(key) if key else group[member]


def num_uncertain(group: Json, column: Column) -> int:
    """The number of samples of a speed figure whose interval contains the threshold."""
    _, member, key = column
    thresholds = {"fast": key, "faster_rate": "1.1"}
    return int(group["uncertain"].get(thresholds.get(member), 0))


def everything(run: Json) -> Json:
    """The figures over all tasks of a run; None if the run has none."""
    return run["groups"].get("all")


def leaderboard(runs: list[Json]) -> list[int]:
    """The positions of runs, those with the highest Pass@1 first."""

    def key(index: int) -> float:
        group = everything(runs[index])
        best = group and (group["pass_at"].get("1") or group["average"])
        return -best["value"] if best else 1.0

    return sorted(range(len(runs)), key=key)


def two_runs(document: Json) -> Json:
    """For exactly two runs, their order in time and the tasks at which they differ; otherwise None.

    A row has its task, for each run the text "2 of 4", and the difference of the shares."""
    runs = document["runs"]
    if len(runs) != 2:
        return None
    order = sorted((0, 1), key=lambda index: str(runs[index].get("created", "")))
    shares: dict[str, list[list[bool]]] = {}
    for part, index in enumerate(order):
        by_sample: dict[tuple[str, int], bool] = {}
        for one in runs[index]["samples"]:
            key = (one["task"], one["sample"])
            by_sample[key] = by_sample.get(key, False) or one["outcome"] == "pass"
        for (task, _), has_passed in by_sample.items():
            shares.setdefault(task, [[], []])[part].append(has_passed)
    rows = []
    for task, (before, after) in sorted(shares.items()):
        if before and after and sum(before) * len(after) != sum(after) * len(before):
            difference = sum(after) / len(after) - sum(before) / len(before)
            parts = [f"{sum(one)} of {len(one)}" for one in (before, after)]
            rows.append({"task": task, "parts": parts, "difference": difference})
    return {"order": order, "rows": rows}
