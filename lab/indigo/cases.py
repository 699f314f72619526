# SPDX-License-Identifier: Apache-2.0
"""Cases of the benchmark: programs of a suite as tasks and answers, and the files of all."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Graph:
    """Neighbors of vertex v: `neighbors[index[v]:index[v + 1]]`."""

    index: tuple[int, ...]
    neighbors: tuple[int, ...]

    @property
    def num_vertices(self) -> int:
        return len(self.index) - 1

    @staticmethod
    def of_edges(num_vertices: int, edges: Iterable[tuple[int, int]]) -> Graph:
        adjacent: list[set[int]] = [set() for _ in range(num_vertices)]
        for a, b in edges:
            if a != b:
                adjacent[a].add(b)
                adjacent[b].add(a)
        index, neighbors = [0], list[int]()
        for one in adjacent:
            neighbors += sorted(one)
            index.append(len(neighbors))
        return Graph(tuple(index), tuple(neighbors))


def _hub_edges() -> Iterable[tuple[int, int]]:
    draw = random.Random(7)
    for v in range(2, 99):
        yield 1, v
        if v % 3:
            yield 50, v
        for _ in range(2):
            yield v, draw.randrange(1, 99)


# Two vertices with many edges, and none at the first and the last one; vertices of degree two; two
# edges that meet in one vertex, from two warps and from one.
GRAPHS = {
    "hub": Graph.of_edges(100, _hub_edges()),
    "path": Graph.of_edges(6, [(v, v + 1) for v in range(1, 4)]),
    "two_warps": Graph.of_edges(70, [(1, 40), (35, 40)]),
    "one_warp": Graph.of_edges(70, [(2, 40), (3, 40)]),
}


@dataclass(frozen=True)
class Verdict:
    """The oracle's: kinds of findings that show, and those that a checker may have or not."""

    shows: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    name: str
    bugs: str  # The bugs in the program's name, "none" without any.
    task: str
    answer: str
    truth: Verdict


def spread(groups: Mapping[str, Sequence[T]], count: int, draw: random.Random) -> list[T]:
    """One of each group, then a second one of each, until there are `count`."""
    left = [draw.sample(list(group), len(group)) for _, group in sorted(groups.items())]
    draw.shuffle(left)
    chosen: list[T] = []
    while len(chosen) < count and any(left):
        for group in left:
            if group and len(chosen) < count:
                chosen.append(group.pop())
    return chosen


def grouped(items: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = defaultdict(list)
    for name, item in items:
        groups[name].append(item)
    return groups


def write(cases: Sequence[Case], folder: Path) -> None:
    """tasks/*.py, answers.jsonl for `musacoder eval`, and labels.json."""
    (folder / "tasks").mkdir(parents=True, exist_ok=True)
    rows, labels = [], {}
    for case in cases:
        task = f"tasks/{case.name.replace('@', '__')}.py"
        (folder / task).write_text(case.task)
        response = f"```python\n{case.answer}\n```\n"
        rows.append({"task": task, "sample": case.name, "response": response})
        labels[case.name] = {"bugs": case.bugs, **asdict(case.truth)}
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "labels.json").write_text(json.dumps(labels, indent=1) + "\n")
