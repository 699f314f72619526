# SPDX-License-Identifier: Apache-2.0
"""The document as one HTML file that loads nothing and runs only its own inline script.

Tables, charts, feedback and plain sources are in the markup, readable without JavaScript; verdicts,
reasoning and highlighting are in compressed blobs, CHUNK entries a blob, of which the script
unpacks one when an entry of it is opened.
"""

from __future__ import annotations

import base64
import difflib
import functools
import gzip
import hashlib
import json
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from markupsafe import Markup

from report import charts
from report.published_times import baselines_for
from report.document import (
    OUTCOMES,
    Json,
    columns,
    everything,
    figure,
    findings_of,
    leaderboard,
    num_uncertain,
    two_runs,
)
from report.highlight import marks

HERE = Path(__file__).resolve().parent
CHUNK = 64  # Entries a blob.
NUM_COLOURS = 8  # The number of run colours in style.css.
MANY_TEXTS = 200  # From this number on, highlighting uses several processes.


# ---- Filters ------------------------------------------------------------------------------------


def number(value: object, digits: int = 3) -> str:
    """A number with `digits` significant digits, a text unchanged, and a dash for None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "–" if value is None else str(value)
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.{digits}g}"


def percent(value: float) -> str:
    return f"{value * 100:.1f} %"


def short(count: int) -> str:
    """A large count with three digits: 1.4 M."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)


def points(difference: float) -> str:
    return f"{difference * 100:+.1f}".replace("-", "−")


def text(value: str) -> Markup:
    """A text between tags, where quotes need no escape: they are a twentieth of a source."""
    return Markup(value.replace("&", "&amp;").replace("<", "&lt;"))


def flat(value: Json, prefix: str = "") -> dict[str, str]:
    """The leaves of nested settings by dotted name."""
    if not isinstance(value, dict):
        return {prefix: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
    leaves = {}
    for name, inner in value.items():
        leaves.update(flat(inner, f"{prefix}.{name}" if prefix else name))
    return leaves


# ---- The page -----------------------------------------------------------------------------------


def _marks_of(texts: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < MANY_TEXTS:
        found = list(map(marks, distinct))
    else:
        with ProcessPoolExecutor() as pool:
            found = list(pool.map(marks, distinct, chunksize=20))
    by_text = dict(zip(distinct, found))
    return [by_text[text] for text in texts]


def _blobs(entries: list[Json]) -> list[str]:
    """Columns of CHUNK entries each, as base64 of gzip: no character of it can end a script."""
    found = []
    parts: Any = _environment().get_template("verdict.html").module
    all_marks = _marks_of([entry.get("answer", entry.get("code")) for entry in entries])
    for begin in range(0, len(entries), CHUNK):
        part = entries[begin : begin + CHUNK]
        blob = {
            "parts": [
                parts.verdict(entry["verdict"]) if "verdict" in entry else "" for entry in part
            ],
            "verdict": [entry.get("verdict") for entry in part],
            "reasoning": [entry.get("reasoning", "") for entry in part],
            "marks": all_marks[begin : begin + CHUNK],
        }
        packed = json.dumps(blob, ensure_ascii=False, separators=(",", ":"))
        found.append(base64.b64encode(gzip.compress(packed.encode(), mtime=0)).decode())
    return found


def _settings(runs: list[Json], member: str) -> list[tuple[str, list[str]]]:
    leaves = [flat(run[member]) for run in runs]
    names = dict.fromkeys(name for one in leaves for name in one)
    return [(name, [one.get(name, "–") for one in leaves]) for name in names]


def _groups(runs: list[Json], kind: str) -> list[str]:
    """The names of groups of a kind, in an order where level 10 follows level 9."""
    names = {name for run in runs for name in run["groups"] if name.startswith(kind + " ")}
    return sorted(
        names, key=lambda name: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", name)]
    )


def _number_entries(document: Json) -> list[Json]:
    """Numbers everything that a reader can open: samples by run, then tasks."""
    entries = []
    for index, run in enumerate(document["runs"]):
        entries += [{**sample, "run": index} for sample in run["samples"]]
    entries += document["tasks"]
    for index, entry in enumerate(entries):
        entry["entry"] = index
    return entries


def _changes(samples: list[Json]) -> dict[int, str]:
    """The changed lines of each answer that follows another, by the answer's entry."""
    by_turn = {(s["run"], s["task"], s["sample"], s["turn"]): s for s in samples}
    found = {}
    for (run, task, sample, turn), after in by_turn.items():
        before = by_turn.get((run, task, sample, turn - 1))
        if before is None:
            continue
        lines = difflib.unified_diff(
            before["answer"].split("\n"), after["answer"].split("\n"), n=2, lineterm=""
        )
        found[after["entry"]] = "\n".join([*lines][2:]) or "nothing"
    return found


def _waiting(found: list[Json], run: Json) -> int:
    """The number of samples of a task without a verdict."""
    wanted = run["settings"].get("samples")
    is_count = isinstance(wanted, int) and run["wanted"] > run["judged"]
    return max(0, wanted - len({s["sample"] for s in found})) if is_count else 0


def _inline(name: str) -> tuple[Markup, str]:
    """A file of ours for a <style> or <script>, and its hash for the policy."""
    source = (HERE / name).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return Markup(source), f"'sha256-{digest}'"


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number, percent=percent, points=points, short=short, text=text
    )
    return environment


def render(document: Json) -> str:
    """The page of a document that document.load has read."""
    runs = document["runs"]
    entries = _number_entries(document)
    samples = [entry for entry in entries if "outcome" in entry]
    by_task: dict[str, list[list[Json]]] = {}
    for name in [task["id"] for task in document["tasks"]] + [s["task"] for s in samples]:
        by_task.setdefault(name, [[] for _ in runs])
    for sample in samples:
        by_task[sample["task"]][sample["run"]].append(sample)
    findings = {sample["entry"]: findings_of(sample["verdict"]) for sample in samples}
    style, style_hash = _inline("style.css")
    script, script_hash = _inline("script.js")
    context: dict[str, Any] = {
        **document,
        **dict(style=style, script=script, style_hash=style_hash, script_hash=script_hash),
        **dict(figure=figure, everything=everything, outcome_names=OUTCOMES),
        "num_uncertain": num_uncertain,
        **dict(num_colours=NUM_COLOURS, chunk=CHUNK, samples=samples, by_task=by_task),
        **dict(findings=findings, changes=_changes(samples), waiting=_waiting),
        "found_kinds": sorted({kind for kinds in findings.values() for kind in kinds}),
        "beside": two_runs(document),
        "order": leaderboard(runs),
        "columns": columns(runs),
        "baselines": baselines_for(document),
        "kinds": {kind: _groups(runs, kind) for kind in ("level", "family")},
        "curves": charts.curves(runs),
        "histograms": {
            "Speed-up over eager PyTorch": charts.speedup_histograms(runs, "speedup"),
            "Speed-up over torch.compile": charts.speedup_histograms(runs, "speedup_compile"),
            "SOL score": charts.score_histograms(runs),
        },
        "stages": list(dict.fromkeys(s["stage"] for run in runs for s in run["funnel"])),
        "shown_outcomes": [name for name in OUTCOMES if any(s["outcome"] == name for s in samples)],
        "levels": sorted({str(entry["level"]) for entry in entries}),
        "settings": {
            title: _settings(runs, member)
            for title, member in (("Protocol", "settings"), ("Environment", "environment"))
        },
        "blobs": _blobs(entries),
    }
    return _environment().get_template("page.html").render(context)
