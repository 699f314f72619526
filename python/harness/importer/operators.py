# SPDX-License-Identifier: Apache-2.0
"""`musacoder task operators`: the operators of a suite as PyTorch dispatches them, by class."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from harness.importer import attempt
from harness.importer.graph import Graph
from harness.importer.importing import SECONDS_OF_GRADE, graph_from, tasks_of
from harness.importer.sandboxed import Sandbox
from harness.importer.sources import Refused
from harness.worker.wire import Json


def graphs_of(sandbox: Sandbox, texts: dict[str, str]) -> dict[str, Graph | str]:
    """The graph of each task, or the reason why there is none."""
    asked = [(name, {"text": text, "wants_grade": False}) for name, text in texts.items()]
    found: dict[str, Graph | str] = {}
    for name, result in sandbox.run(attempt.inspect_task, asked, SECONDS_OF_GRADE):
        why = result.get("died") or result.get("graph_error") or "no graph"
        found[name] = graph_from(result) or str(why)[:200]
    return {name: found[name] for name in texts}


def print_operators(sandbox: Sandbox, paths: list[Path], out: Path | None) -> int:
    """Prints a table by class, and writes a row for each task to `out`."""
    texts = {name: text for path in paths for name, text in tasks_of(path)}
    if not texts:
        raise Refused("no task in these paths: give a .jsonl file or a folder of .py files")
    found = graphs_of(sandbox, texts)
    rows = [_row(name, graph) for name, graph in found.items()]
    if out is not None:
        out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(_table(rows))
    return 0


def _row(name: str, graph: Graph | str) -> Json:
    if isinstance(graph, str):
        return {"task": name, "error": graph}
    return {"task": name, "operators": graph.operators, "families": graph.families(),
            "structure": graph.structure}  # fmt: skip


def _table(rows: list[Json]) -> str:
    tasks: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for row in rows:
        tasks.update(row.get("families", {}).keys())
        calls.update(row.get("families", {}))
    lines = [f"{'class':16} {'tasks':>6} {'operators':>10}"]
    lines += [f"{name:16} {tasks[name]:6} {calls[name]:10}" for name, _ in calls.most_common()]
    without = [f"{row['task']}: {row['error']}" for row in rows if "error" in row]
    return "\n".join([*lines, f"{len(rows)} tasks, {len(without)} without operators", *without])
