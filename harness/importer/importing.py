# SPDX-License-Identifier: Apache-2.0
"""`musacoder import`: from paths to tasks, and a table of what was taken and what was refused.

A candidate passes these steps; the first that it fails is its row's reason:

  its text        self-contained (closure.py), or a row's own
  its arguments   those that its text makes, or those that the sandbox found (attempt.py)
  the gate        of the forge (harness/forge/gate.py), in the sandbox
  overlap         with --kernelbench (overlap.py), and with what was taken before
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.importer import arguments, attempt, closure
from harness.importer.graph import Graph
from harness.importer.overlap import Suite
from harness.importer.sandboxed import Sandbox
from harness.importer.sources import (
    Folder,
    Refused,
    Row,
    SourceFile,
    folder_of,
    is_task,
    licence_of,
    modules_of,
    parsed,
    rows_of,
)
from harness.importer.task_text import Arguments, task_text
from harness.worker.wire import Json

DATA_SETS = (".jsonl", ".parquet")
SECONDS_OF_SEARCH = 60
SECONDS_OF_GATE = 60
SAME_STRUCTURE_MAX = 4  # A limit for tasks of one operator; of others one is enough.
TEXT_BYTES_MAX = 200_000
REQUEST = "Write a CUDA kernel for this PyTorch module.\n"


@dataclass(frozen=True)
class Options:
    out: Path
    suites: list[Path] = field(default_factory=list)
    limit: int = 0  # A limit for each path; 0 for all.


@dataclass
class Candidate:
    """One class or row on its way; `why` is set where it was refused."""

    path: str  # The path of the command line that it is from.
    origin: str
    name: str  # The class; "" where the text says it.
    text: str = ""  # Self-contained, and from `task` on a whole task.
    licence: str = ""
    node: ast.ClassDef | None = None
    examples: list[ast.Module] = field(default_factory=list)
    why: str = ""
    graph: Graph | None = None


class Importer:
    def __init__(self, sandbox: Sandbox, options: Options) -> None:
        self._sandbox = sandbox
        self._options = options
        self._suite = Suite()
        self._structures: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def run(self, paths: list[Path]) -> int:
        for path in self._options.suites:
            self._read_suite(path)
        found: list[Candidate] = []
        folders = {path: folder_of(path) for path in paths if path.suffix not in DATA_SETS}
        for path in paths:
            some = list(_candidates_of(path, folders))
            found += some[: self._options.limit or len(some)]
        _note(f"{len(found)} candidates")
        self._find_arguments(found)
        self._inspect(found)
        self._drop_overlap(found)
        self._write(found)
        return 0

    def _read_suite(self, path: Path) -> None:
        texts = dict(tasks_of(path))
        asked = [(name, {"text": text, "wants_gate": False}) for name, text in texts.items()]
        for name, result in self._sandbox.run(attempt.inspect_task, asked, SECONDS_OF_GATE):
            graph = graph_from(result)
            if graph is None:
                self._counts["suite_tasks_without_graph"] += 1
            else:
                self._suite.add(name, graph, texts[name])
                self._counts["suite_tasks"] += 1
        _note(f"{path}: {self._counts['suite_tasks']} tasks to be kept out")

    def _find_arguments(self, found: list[Candidate]) -> None:
        asked = []
        for number, one in enumerate(found):
            if one.node is None or one.why:
                continue
            proposals = [asdict(p) for p in arguments.proposals(one.node, one.examples)]
            asked.append((number, {"text": one.text, "name": one.name, "proposals": proposals}))
        results = self._sandbox.run(attempt.find_arguments, asked, SECONDS_OF_SEARCH)
        for done, (number, result) in enumerate(results, 1):
            one = found[number]
            try:
                one.text = task_text(one.text, one.name, Arguments.of(result))
            except Refused as refused:
                one.why = str(refused)
            if done % 50 == 0:
                _note(f"arguments: {done} of {len(asked)}")

    def _inspect(self, found: list[Candidate]) -> None:
        asked = [(number, {"text": one.text}) for number, one in enumerate(found) if not one.why]
        results = self._sandbox.run(attempt.inspect_task, asked, SECONDS_OF_GATE)
        for done, (number, result) in enumerate(results, 1):
            _take_inspection(found[number], result)
            if done % 50 == 0:
                _note(f"gate: {done} of {len(asked)}")

    def _drop_overlap(self, found: list[Candidate]) -> None:
        for one in found:
            if one.why or one.graph is None:
                continue
            near = self._suite.why_too_near(one.graph, one.text)
            limit = SAME_STRUCTURE_MAX if len(one.graph.operators) < 2 else 1
            if near is not None:
                one.why = near
            elif self._structures[one.graph.structure] >= limit:
                one.why = "duplicate: a task with this structure was taken"
            else:
                self._structures[one.graph.structure] += 1

    # ---- Output ---------------------------------------------------------------------------------

    def _write(self, found: list[Candidate]) -> None:
        out = self._options.out
        (out / "tasks").mkdir(parents=True, exist_ok=True)
        names: Counter[str] = Counter()
        rows, prompts = [], []
        for one in found:
            row: Json = {"path": one.path, "origin": one.origin, "class": one.name}
            row |= {"result": "refused" if one.why else "taken", "why": one.why}
            row |= {"licence": one.licence}
            if not one.why and one.graph is not None:
                row |= self._taken(one, names)
                prompts.append(_prompt_row(one, row))
            rows.append(row)
        _write_lines(out / "import.jsonl", rows)
        _write_lines(out / "rl.jsonl", prompts)
        summary: Json = {"paths": _table(rows), "counts": dict(sorted(self._counts.items()))}
        (out / "import.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        print(_text_of_table(summary["paths"]))

    def _taken(self, one: Candidate, names: Counter[str]) -> Json:
        assert one.graph is not None
        stem = re.sub(r"\W+", "_", one.name or Path(one.origin.split(":")[0]).stem) or "task"
        names[stem.lower()] += 1
        task = stem if names[stem.lower()] == 1 else f"{stem}_{names[stem.lower()]}"
        head = f"# From {one.origin}{', ' + one.licence if one.licence else ''}.\n"
        path = self._options.out / "tasks" / f"{task}.py"
        path.write_text(head + one.text, encoding="utf-8")
        self._counts["taken"] += 1
        if self._suite.shares_single(one.graph):
            self._counts["taken_that_are_an_operator_of_the_suite"] += 1
        return {
            "task": task,
            "operators": one.graph.operators,
            "families": one.graph.families(),
            "structure": one.graph.structure,
            "nearest": round(self._suite.nearest(one.graph), 3),
        }


# ---- Candidates ---------------------------------------------------------------------------------


def _candidates_of(path: Path, folders: dict[Path, Folder]) -> Iterator[Candidate]:
    if path.suffix in DATA_SETS:
        for found in rows_of(path):
            if isinstance(found, Row):
                yield _of_row(str(path), found)
            else:
                yield Candidate(str(path), found[0], "", why=f"not read: {found[1]}")
        return
    folder = folders[path]
    others = [one for one in folders.values() if one is not folder]
    if not folder.files and not folder.unreadable:
        raise Refused(f"{path} holds no Python file")
    licence = licence_of(path) if path.is_dir() else ""
    for relative, why in folder.unreadable.items():
        yield Candidate(str(path), str(relative), "", why=f"not read: {why}")
    for file in folder.files.values():
        if is_task(file):
            yield _of_row(str(path), Row(str(file.path), file.text, "", licence))
    for file, node in modules_of(folder):
        if not is_task(file):
            yield _of_module(str(path), [folder, *others], file, node, licence)


def _of_row(path: str, row: Row) -> Candidate:
    one = Candidate(path, row.origin, row.entry_point, row.text, row.licence)
    try:
        if len(row.text) > TEXT_BYTES_MAX:
            raise Refused("not read: a text of more than 200 kB")
        tree = parsed(row.text)
        classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if row.entry_point and row.entry_point not in classes:
            raise Refused(f"not read: it defines no class {row.entry_point}")
        if not {"get_inputs", "get_init_inputs"} <= functions:
            name = row.entry_point or (classes.pop() if len(classes) == 1 else "")
            node = next((n for n in tree.body if getattr(n, "name", "") == name), None)
            if not isinstance(node, ast.ClassDef):
                raise Refused("not read: it names no class and defines no get_inputs")
            one.name, one.node, one.examples = name, node, [tree]
        elif row.entry_point and row.entry_point != "Model":
            one.text = row.text.rstrip("\n") + f"\n\n\nModel = {row.entry_point}\n"
    except Refused as refused:
        one.why = str(refused)
    return one


def _of_module(
    path: str, folders: list[Folder], file: SourceFile, node: ast.ClassDef, licence: str
) -> Candidate:
    one = Candidate(path, f"{file.path}:{node.lineno}", node.name, licence=licence, node=node)
    try:
        one.text = closure.self_contained(folders, file, node.name)
    except Refused as refused:
        one.why = f"not self-contained: {refused}"
    one.examples = [file.tree, *folders[0].examples]
    one.examples += [other.tree for other in folders[0].files.values() if _is_test(other.path)]
    return one


def _is_test(path: Path) -> bool:
    return path.name.startswith("test") or path.name.endswith("_test.py") or "tests" in path.parts


def tasks_of(path: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of every task of a suite: a data set, or a folder of task files."""
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    for file in files if files and files[0].suffix != ".py" else []:
        for row in rows_of(file):
            if isinstance(row, Row):
                yield f"{file.stem}/{row.origin.rpartition(':')[2]}", row.text
    for file in sorted(path.rglob("*.py")) if path.is_dir() else files:
        if file.suffix == ".py":
            text = file.read_text(encoding="utf-8", errors="replace")
            if "def get_inputs" in text:
                yield str(file.relative_to(path)) if path.is_dir() else file.name, text


# ---- What the sandbox said ----------------------------------------------------------------------


def graph_from(result: object) -> Graph | None:
    """The graph of an inspection; None where there is none, or where it is something else."""
    given = result.get("graph") if isinstance(result, dict) else None
    if not isinstance(given, dict):
        return None
    operators, paths, structure = (given.get(k) for k in ("operators", "paths", "structure"))
    lists = [operators, paths]
    if not isinstance(structure, str) or not all(isinstance(one, list) for one in lists):
        return None
    if not all(isinstance(word, str) for one in lists for word in one):  # type: ignore
        return None
    return Graph(operators, structure[:64], paths)  # type: ignore


def _take_inspection(one: Candidate, result: object) -> None:
    one.graph = graph_from(result)
    if not isinstance(result, dict) or "died" in result:
        died = str(result.get("died")) if isinstance(result, dict) else "no result"
        one.why = f"not judged: {died}"
    elif result.get("gate"):
        first = str(list(result["gate"])[0])
        is_gate = not first.startswith(("does not run", "cannot be judged"))
        one.why = f"gate: {first}" if is_gate else first
    elif one.graph is None:
        one.why = f"operators not known: {result.get('graph_error', '')}"
    elif not one.graph.operators:
        one.why = "gate: it computes nothing"
    one.why = " ".join(one.why.split())[:240]


def _prompt_row(one: Candidate, row: Json) -> Json:
    """A row of rl.jsonl, in the form of the forge's."""
    assert one.graph is not None
    extra = {"task": row["task"], "split": "train", "families": sorted(row["families"])}
    extra |= {"operators": row["operators"], "depth": len(row["operators"])}
    return {
        "id": row["task"],
        "prompt": [{"role": "user", "content": f"{REQUEST}```python\n{one.text}```\n"}],
        "data_source": "musacoder/import",
        "reward_model": {"style": "rule", "ground_truth": one.text},
        "extra_info": extra,
        "label": one.text,
        "metadata": extra,
    }


def _write_lines(path: Path, rows: list[Json]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _table(rows: list[Json]) -> list[Json]:
    """For each path its counts, and its refusals by the kind of their reason."""
    tables = []
    for path in dict.fromkeys(row["path"] for row in rows):
        own = [row for row in rows if row["path"] == path]
        why = Counter(_kind(row["why"]) for row in own if row["why"])
        taken = sum(not row["why"] for row in own)
        table: Json = {"path": path, "found": len(own), "taken": taken}
        tables.append({**table, "refused": dict(why.most_common())})
    return tables


def _kind(why: str) -> str:
    head, _, rest = why.partition(": ")
    if head in ("gate", "overlap", "not self-contained"):
        rest = re.sub(
            r"(structure of|away from|chains of operators of) .*", r"\1 one of the suite", rest
        )
        rest = re.sub(r"(parameter|input|axis) \S+", r"\1", rest)
        rest = re.sub(r"(the package) (\S+)", r"\1 \2", rest)
        rest = re.sub(r"^\S+ is used as a whole", "a module is used as a whole", rest)
        rest = re.sub(r"^two (definitions|imports) of .*", r"two \1 of a name", rest)
        rest = re.sub(r"^\S+ does not define .*", "a name is not defined", rest)
        return f"{head}: {rest}"
    return f"{head}: {rest.partition(': ')[0]}" if rest else head


def _text_of_table(tables: list[Json]) -> str:
    lines = []
    for table in tables:
        lines.append(f"{table['path']}: {table['found']} found, {table['taken']} taken")
        lines += [f"  {count:6} {why}" for why, count in table["refused"].items()]
    return "\n".join(lines)


def _note(text: str) -> None:
    print(f"musacoder: {text}", file=sys.stderr, flush=True)
