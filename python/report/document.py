# SPDX-License-Identifier: Apache-2.0
"""The document of a report: reading it, and the figures that its pages show.

`musacoder report` writes the document; docs/report.schema.json has its members, docs/bench.md
defines its figures. Texts in it were written by models, so `load` makes each one safe to show: no
text reaches a page with a control character, half of a surrogate pair, or a character that reverses
the direction of writing. Escaping is left to the format that is written.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Json = Any  # A value that JSON has.

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


class BadDocument(Exception):
    """The file holds no document of this program; the message is one line."""


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
    """A cleaned document. Raises BadDocument for a text that is none, or one of another version."""
    try:
        document = clean(json.loads(text, parse_constant=_refuse_constant))
    except RecursionError:
        raise BadDocument("nested too deeply") from None
    except ValueError as error:
        raise BadDocument(f"not JSON: {error}") from None
    version = document.get("schema") if isinstance(document, dict) else None
    if version != SCHEMA:
        raise BadDocument(f"schema: expected {SCHEMA}, got {version}")
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
