# SPDX-License-Identifier: Apache-2.0
"""`musacoder import`: makes tasks from paths, and prints a table of accepted and refused
candidates.

A candidate passes these steps; the first that it fails is its row's reason:

  its text        self-contained (closure.py), or a row's own
  its arguments   the text's own, or arguments that the sandbox found (attempt.py); in a second
                  round the arguments with which another imported class builds and calls it
  its grade       by the judge (harness.judge.hygiene), in the sandbox; a trivial task is refused
  overlap         with --kernelbench (overlap.py), and with tasks taken before
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from harness.importer import arguments, attempt, closure
from harness.importer.arguments import Examples
from harness.importer.definitions import definitions_of
from harness.importer.graph import Graph
from harness.importer.overlap import Suite
from harness.importer.problems import problem_folders, problems_of
from harness.importer.sandboxed import Sandbox
from harness.importer.signature import Proposal
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
NOTHING_TAKEN = 3  # The exit code; src/cli/commands.h calls it kExitFound.
SECONDS_OF_GRADE = 90
SEEN_MAX = 4  # Examples from other classes per class.
SAME_STRUCTURE_MAX = 4  # For tasks of one operator; otherwise one.
TEXT_BYTES_MAX = 200_000
REQUEST = "Write a CUDA kernel for this PyTorch module.\n"


@dataclass(frozen=True)
class Options:
    out: Path
    suites: list[Path] = field(default_factory=list)
    limit: int = 0  # The limit for each path; 0: none.


@dataclass(eq=False)
class Module:
    """A class whose constructor arguments and inputs are to be found."""

    examples: Examples
    folders: list[Folder] = field(default_factory=list)  # It is empty for a row's own text.
    file: SourceFile | None = None
    contained: closure.Text = closure.Text("", {}, {})
    with_arguments: closure.Text = closure.Text("", {}, {})  # The text with its arguments.
    why_fewer: str = ""  # The reason why an example failed.
    seen: list[Proposal] = field(default_factory=list)  # Arguments that other classes give it.
    proposals: list[Proposal] = field(default_factory=list)  # The proposals that were tried last.
    found: Arguments | None = None  # Arguments with which a forward ran.
    used: Proposal = Proposal()  # The proposal of `found`.
    seen_inside: Json = field(default_factory=dict)  # Arguments that it passes to other classes.
    why: str = ""  # The reason why nothing was found.


@dataclass
class Candidate:
    """One class or row that is being imported; `why` is set if it was refused."""

    path: str  # Its path on the command line.
    origin: str
    name: str  # The class; "" if the text determines it.
    text: str = ""  # Self-contained; after `task` a whole task.
    licence: str = ""
    why: str = ""
    module: Module | None = None  # None if the arguments are known.
    grade: str = ""
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
            if not some:
                _note(f"{path} holds no module: no class with a forward, and no row")
            found += some[: self._options.limit or len(some)]
        if not found:
            raise Refused(f"nothing to import in {', '.join(map(str, paths))}")
        _note(f"{len(found)} candidates")
        self._find_arguments(found)
        self._inspect(found)
        self._drop_overlap(found)
        self._write(found)
        if not self._counts["taken"]:
            _note(f"nothing was taken: {self._options.out / 'import.jsonl'} has the reasons")
            return NOTHING_TAKEN
        return 0

    def _read_suite(self, path: Path) -> None:
        texts = dict(tasks_of(path))
        asked = [(name, {"text": text, "wants_grade": False}) for name, text in texts.items()]
        for name, result in self._sandbox.run(attempt.inspect_task, asked, SECONDS_OF_GRADE):
            graph = graph_from(result)
            if graph is None:
                self._counts["suite_tasks_without_graph"] += 1
            else:
                self._suite.add(name, graph, texts[name])
                self._counts["suite_tasks"] += 1
        _note(f"{path}: {self._counts['suite_tasks']} tasks to be kept out")

    def _find_arguments(self, found: list[Candidate]) -> None:
        modules = [one for one in found if one.module is not None and not one.why]
        self._try_arguments(modules)
        shown = _note_examples_of_others(modules)
        again = [one for one in modules if one.module in shown and _needs_example(one.module)]
        self._try_arguments(again)
        for one in modules:
            _take_arguments(one)

    def _try_arguments(self, modules: list[Candidate]) -> None:
        asked = []
        for number, one in enumerate(modules):
            module, fields = one.module, ("init", "named", "inputs")
            assert module is not None
            _propose(one)
            rows = [{name: getattr(each, name) for name in fields} for each in module.proposals]
            body = {"text": module.with_arguments.text, "name": one.name, "proposals": rows}
            asked.append((number, {**body, "settings": module.examples.settings}))
        results = self._sandbox.run(attempt.find_arguments, asked, SECONDS_OF_SEARCH)
        for done, (number, result) in enumerate(results, 1):
            module = modules[number].module
            assert module is not None
            _take_result(module, result)
            if done % 50 == 0:
                _note(f"arguments: {done} of {len(asked)}")

    def _inspect(self, found: list[Candidate]) -> None:
        asked = [(number, {"text": one.text}) for number, one in enumerate(found) if not one.why]
        results = self._sandbox.run(attempt.inspect_task, asked, SECONDS_OF_GRADE)
        for done, (number, result) in enumerate(results, 1):
            _take_inspection(found[number], result)
            if done % 50 == 0:
                _note(f"grades: {done} of {len(asked)}")

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
            row |= {"licence": one.licence, "grade": one.grade}
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
    examples = Examples(folder.files.values(), folder.examples)
    others = [one for one in folders.values() if one is not folder]
    licence = licence_of(path) if path.is_dir() else ""
    problems = problem_folders(path) if path.is_dir() else set()
    files = [one for one in folder.files.values()
             if not problems.intersection((folder.root / one.path).parents)]  # fmt: skip
    for relative, why in folder.unreadable.items():
        yield Candidate(str(path), str(relative), "", why=f"not read: {why}")
    for file in files:
        if is_task(file):
            yield _of_row(str(path), Row(str(file.path), file.text, "", licence))
    for row in chain(definitions_of(path), problems_of(path)) if path.is_dir() else ():
        if isinstance(row, Row):
            yield _of_row(str(path), replace(row, licence=licence))
        else:
            yield Candidate(str(path), row[0], "", why=row[1])
    for file, node in modules_of(folder):
        if file in files and not is_task(file):
            yield _of_module(str(path), [folder, *others], examples, file, node, licence)


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
            one.name = name
            file = SourceFile(Path(), Path(row.origin), row.text, tree)
            contained = closure.Text(row.text, {}, {})
            one.module = Module(Examples([file]), file=file, contained=contained)
        elif row.entry_point and row.entry_point != "Model":
            one.text = row.text.rstrip("\n") + f"\n\n\nModel = {row.entry_point}\n"
    except Refused as refused:
        one.why = str(refused)
    return one


def _of_module(
    path: str,
    folders: list[Folder],
    examples: Examples,
    file: SourceFile,
    node: ast.ClassDef,
    licence: str,
) -> Candidate:
    one = Candidate(path, f"{file.path}:{node.lineno}", node.name, licence=licence)
    try:
        contained = closure.self_contained(folders, file, node.name)
        one.text = contained.text
        one.module = Module(examples, folders, file, contained)
    except Refused as refused:
        one.why = f"not self-contained: {refused}"
    return one


# ---- Arguments ----------------------------------------------------------------------------------


def _propose(one: Candidate) -> None:
    """Finds the proposals that can be tried, and a text that defines all that they need."""
    module = one.module
    assert module is not None
    module.proposals, module.with_arguments = [], module.contained
    names: set[str] = set()
    proposals = arguments.proposals(one.name, parsed(one.text), module.file, module.examples)
    for each in [*module.seen, *proposals]:
        try:
            if each.names() - names:
                module.with_arguments = _text_for(one, [*module.proposals, each])
        except Refused as refused:
            module.why_fewer = module.why_fewer or str(refused)
            continue
        names |= each.names()
        module.proposals.append(each)


def _text_for(one: Candidate, proposals: list[Proposal]) -> closure.Text:
    """The text of a class with the definitions that its arguments need. Raises Refused."""
    module = one.module
    assert module is not None and module.file is not None
    if not module.folders:
        return module.contained
    owners = module.contained.owners
    also = [
        (owners.get(name) or each.owners.get(name) or each.file or module.file, name)
        for each in proposals
        for name in sorted(each.names())
        if name != one.name and not hasattr(builtins, name)
    ]
    return closure.self_contained(module.folders, module.file, one.name, also)


def _take_result(module: Module, result: object) -> None:
    """Stores the sandbox's result for the proposals; if it failed, the earlier result is kept."""
    try:
        found = Arguments.of(result)
        number = result["number"]  # type: ignore[index]
        if type(number) is not int or not 0 <= number < len(module.proposals):
            raise Refused("not run: its process wrote something else than a result")
        module.found = found
        module.used = replace(module.proposals[number], init=tuple(found.init), named=found.named)
        inside = result.get("seen")  # type: ignore[attr-defined]
        module.seen_inside = inside if isinstance(inside, dict) else {}
    except Refused as refused:
        module.why = str(refused)


def _needs_example(module: Module) -> bool:
    """True if nothing was found, or only arguments with a module that does nothing."""
    return module.found is None or "nn.Identity" in repr((module.used.init, module.used.named))


def _note_examples_of_others(modules: list[Candidate]) -> list[Module]:
    """Notes for each class how others build and call it; returns classes with new examples."""
    by_place = {
        (one.module.file.root, one.module.file.path, one.name): one.module
        for one in modules
        if one.module is not None and one.module.file is not None
    }
    shown = []
    for module in [one.module for one in modules if one.module is not None]:
        owners = module.contained.owners
        for name, given in module.seen_inside.items():
            owner = owners.get(name)
            target = by_place.get((owner.root, owner.path, name)) if owner is not None else None
            if target is None or len(target.seen) >= SEEN_MAX:
                continue
            try:
                found = Arguments.of(given)
            except Refused:
                continue
            inputs = tuple(found.inputs)
            shown.append(target)
            target.seen.append(
                Proposal(tuple(found.init), found.named, inputs, module.file, owners)
            )
    return shown


def _take_arguments(one: Candidate) -> None:
    module = one.module
    assert module is not None
    try:
        if module.found is None:
            raise Refused(module.why)
        text = _text_for(one, [module.used]).defined()
        one.text = task_text(text, one.name, module.found)
    except Refused as refused:
        why, fewer = str(refused), module.why_fewer
        if "needs the package" in fewer and why.startswith("not constructed"):
            why = f"not self-contained: what it is built from {fewer}"
        one.why = module.with_arguments.why_undefined(why) or why


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


# ---- The sandbox's results ----------------------------------------------------------------------


def graph_from(result: object) -> Graph | None:
    """The graph of an inspection; None if there is none or it is malformed."""
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
        return
    one.grade = str(result.get("grade"))[:20]
    if result.get("why"):
        one.why = str(result["why"])
    elif one.grade not in ("good", "weak"):
        one.why = f"{one.grade}: {'; '.join(map(str, result.get('reasons') or []))}"
    elif one.graph is None:
        one.why = f"operators not known: {result.get('graph_error', '')}"
    one.why = " ".join(one.why.split())[:400]


def _prompt_row(one: Candidate, row: Json) -> Json:
    """A row of rl.jsonl, in the forge's format."""
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
    """A table with the counts for each path, and its refusals by kind of reason."""
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
    if head in ("overlap", "not self-contained"):
        rest = re.sub(
            r"(structure of|away from|chains of operators of) .*", r"\1 one of the suite", rest
        )
        rest = re.sub(r"^\S+ is used as a whole", "a module is used as a whole", rest)
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
