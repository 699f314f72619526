# SPDX-License-Identifier: Apache-2.0
"""Decides whether a task is too similar to one of an evaluation suite.

Graphs are compared, not texts: operators and their connections, without sizes and literals. A task
of a single operator that the suite has is not refused, since there is only one such graph; it is
counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.importer.graph import Graph

JACCARD_MAX = 0.8
OPERATORS_COMPARED_MIN = 4  # Shorter sequences resemble too many tasks.
GRAM = 13
GRAMS_SHARE_MAX = 0.5


@dataclass
class Suite:
    """The graphs and texts of the tasks to be kept out."""

    graphs: dict[str, Graph] = field(default_factory=dict)
    grams: set[int] = field(default_factory=set)

    def add(self, name: str, graph: Graph, text: str) -> None:
        self.graphs[name] = graph
        self.grams |= _grams(text)

    def nearest(self, graph: Graph) -> float:
        """The nearest task's Jaccard index of chains of three operators."""
        return max((_jaccard(graph.paths, one.paths) for one in self.graphs.values()), default=0.0)

    def shares_single(self, graph: Graph) -> bool:
        """True for a task of at most one operator that the suite has too."""
        return len(graph.operators) < 2 and graph.structure in {
            one.structure for one in self.graphs.values()
        }

    def why_too_near(self, graph: Graph, text: str) -> str | None:
        """The reason to refuse a task, or None."""
        for name, one in self.graphs.items():
            if len(graph.operators) >= 2 and graph.structure == one.structure:
                return f"overlap: the structure of {name}"
            if _is_neighbour(graph.operators, one.operators):
                return f"overlap: at most one operator away from {name}"
            if len(graph.paths) >= 3 and _jaccard(graph.paths, one.paths) >= JACCARD_MAX:
                return f"overlap: nearly all chains of operators of {name}"
        own = _grams(text)
        if own and len(own & self.grams) / len(own) > GRAMS_SHARE_MAX:
            return "overlap: most of its text"
        return None


def _jaccard(one: Iterable[str], other: Iterable[str]) -> float:
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first and second else 0.0


def _is_neighbour(one: list[str], other: list[str]) -> bool:
    """True if the sequences differ in at most one operator (changed, missing or added), not the
    first.
    """
    longer = max(len(one), len(other))
    if longer < OPERATORS_COMPARED_MIN or abs(len(one) - len(other)) > 1 or one[:1] != other[:1]:
        return False
    at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    rests = {
        (tuple(one[at + 1 :]), tuple(other[at + 1 :])),
        (tuple(one[at:]), tuple(other[at + 1 :])),
        (tuple(one[at + 1 :]), tuple(other[at:])),
    }
    return any(first == second for first, second in rests)


def _grams(text: str) -> set[int]:
    """Hashes of all runs of GRAM tokens, without comments and docstrings."""
    text = re.sub(r'"""[\s\S]*?"""|#[^\n]*', "", text)
    words = re.findall(r"\w+|[^\w\s]", text)
    return {hash(tuple(words[i : i + GRAM])) for i in range(len(words) - GRAM + 1)}
