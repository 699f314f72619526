# SPDX-License-Identifier: Apache-2.0
"""The document as Markdown (the tables of figures) and as CSV (a row a sample)."""

from __future__ import annotations

import csv
import io
import re

from report.document import Json, columns, everything, figure, leaderboard

SAMPLE_FIELDS = ("task", "sample", "turn", "level", "families", "outcome", "pending", "q", "stage",
                 "phrase", "reward", "seconds", "tokens", "finish", "sol_score",
                 "time_us")  # fmt: skip
SPEEDUPS = ("speedup", "speedup_compile")
ENDS = ("value", "low", "high", "uncertain")


def percent(value: Json) -> str:
    return f"{value['value'] * 100:.1f} % [{value['low'] * 100:.1f}, {value['high'] * 100:.1f}]"


def _cell(value: object) -> str:
    text = re.sub(r"([\\`*_{}\[\]<>|#~&$])", r"\\\1", " ".join(str(value).split()))
    return text or " "


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def markdown(document: Json) -> str:
    """The headline table, Pass@1 of each group, and the paired differences."""
    runs = [document["runs"][index] for index in leaderboard(document["runs"])]
    parts = [f"# {_cell(document['title'])}\n"]
    shown = columns(runs)
    rows = []
    for run in runs:
        all_tasks = everything(run)
        found = [figure(all_tasks, column) if all_tasks else None for column in shown]
        counts = [all_tasks[name] if all_tasks else 0 for name in ("tasks", "samples")]
        cells = [percent(one) if one else "–" for one in found]
        rows.append([_cell(run["name"]), *map(str, counts), *cells])
    headings = [_cell(column[0]) for column in shown]
    parts.append(_table(["run", "tasks", "samples", *headings], rows))
    parts += [f"{_cell(run['name'])}: {_cell(run['unfinished'])}.\n"
              for run in runs if run["unfinished"]]  # fmt: skip
    names = list(dict.fromkeys(name for run in runs for name in run["groups"] if name != "all"))
    for column in shown[:1]:
        rows = []
        for name in names:
            found = [name in run["groups"] and figure(run["groups"][name], column) for run in runs]
            rows.append([_cell(name), *(percent(one) if one else "–" for one in found)])
        parts.append(_table([column[0], *(_cell(run["name"]) for run in runs)], rows))
    if document["paired"]:
        head = ["b against a", "tasks", "better", "worse", "difference"]
        parts.append(_table(head, [_pair(document, pair) for pair in document["paired"]]))
    return "\n".join(parts)


def _pair(document: Json, pair: Json) -> list[str]:
    a, b = (_cell(document["runs"][pair[side]]["name"]) for side in "ab")
    ends = {"value": pair["difference"], "low": pair["low"], "high": pair["high"]}
    return [f"{b} against {a}", *(str(pair[name]) for name in ("tasks", "better", "worse")),
            percent(ends)]  # fmt: skip


def _plain(value: Json) -> Json:
    """A value for a spreadsheet, which must not take a text for a formula."""
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return "'" + value if isinstance(value, str) and value[:1] in tuple("=+-@\t\n") else value


def samples_csv(document: Json) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    speedups = [f"{name}_{end}" if end != "value" else name for name in SPEEDUPS for end in ENDS]
    writer.writerow(["run", *SAMPLE_FIELDS, *speedups])
    for run in document["runs"]:
        for sample in run["samples"]:
            cells = [run["name"], *(sample[name] for name in SAMPLE_FIELDS)]
            cells += [(sample[name] or {}).get(end) for name in SPEEDUPS for end in ENDS]
            writer.writerow(map(_plain, cells))
    return out.getvalue()
