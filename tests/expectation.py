# SPDX-License-Identifier: Apache-2.0
"""The expectation of a verdict, and its differences from a verdict.

An entry of an `expected.json` reads, all but `expect` optional:

    {"expect": ["pass", "illegal"],          any of these outcomes
     "rules": ["run.library_kernel"],        of an illegal candidate: one finding's rule matches one
     "says": "cudaMalloc",                   the outcome's evidence contains it
     "finding": "global_race",               a finding in a kernel is of this kind
     "line": "sum += x[i]",                  and its line has this text
     "performance": [                        of one that passes: every condition holds
       {"field": "time_us.median", "min": 1900, "max": 2500},
       {"field": "kernels.0.owner", "equals": "candidate"}]}

A rule may be a pattern ("run.*"). A field is a path below the outcome's `performance`; one that the
verdict does not have breaks its condition, so that what was not measured is not taken for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Json = dict[str, Any]
_MISSING = object()


@dataclass(frozen=True)
class Condition:
    field: str
    low: float | None = None
    high: float | None = None
    equals: object = None

    @staticmethod
    def parse(entry: Json) -> Condition:
        unknown = set(entry) - {"field", "min", "max", "equals"}
        if unknown or len(entry) < 2:
            raise ValueError(f"no condition: {entry}")
        return Condition(entry["field"], entry.get("min"), entry.get("max"), entry.get("equals"))

    def breach(self, performance: Any) -> str:
        """The difference, or ""."""
        value = value_at(performance, self.field)
        if value is _MISSING:
            return f"{self.field} was not measured"
        if self.equals is not None and value != self.equals:
            return f"{self.field} is {value!r}, expected {self.equals!r}"
        if self.low is None and self.high is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"{self.field} is {value!r}, expected a number"
        if self.low is not None and not value >= self.low:
            return f"{self.field} is {value:.6g}, expected at least {self.low:g}"
        if self.high is not None and not value <= self.high:
            return f"{self.field} is {value:.6g}, expected at most {self.high:g}"
        return ""


@dataclass(frozen=True)
class Expectation:
    outcomes: tuple[str, ...]
    rules: tuple[str, ...] = ()
    performance: tuple[Condition, ...] = ()
    says: str = ""
    finding: str = ""
    line: str = ""

    @staticmethod
    def parse(entry: Json) -> Expectation:
        """Of an entry that may hold other members too."""
        conditions = tuple(Condition.parse(one) for one in entry.get("performance", []))
        rules = tuple(entry.get("rules", []))
        texts = [entry.get(name, "") for name in ("says", "finding", "line")]
        return Expectation(tuple(entry["expect"]), rules, conditions, *texts)

    def surprises(self, verdict: Json) -> list[str]:
        """The differences of a verdict from the expectation, one per line."""
        outcome = verdict["outcome"]
        kind = outcome["kind"]
        if kind not in self.outcomes:
            return [f"{kind}, expected {' or '.join(self.outcomes)}: {told_by(outcome)}"]
        if kind == "illegal" and self.rules and not self._is_ruled(outcome):
            return [f"illegal by {told_by(outcome)}, expected {' or '.join(self.rules)}"]
        if not any(self.says in text for text in _texts(outcome)):
            return [f"{kind} without {self.says!r}: {told_by(outcome)}"]
        if self.finding and not self._is_found(outcome):
            place = f" at {self.line!r}" if self.line else ""
            return [f"{kind} without a finding of {self.finding}{place}: {told_by(outcome)}"]
        if kind == "pass":
            performance = outcome.get("performance")
            breaches = [condition.breach(performance) for condition in self.performance]
            return [breach for breach in breaches if breach]
        return []

    def _is_found(self, outcome: Json) -> bool:
        return any(
            one.get("kind") == self.finding
            and self.line in (one.get("location") or {}).get("excerpt", "")
            for one in _findings_in(outcome)
        )

    def _is_ruled(self, outcome: Json) -> bool:
        found = [finding["rule"] for finding in outcome["findings"]]
        return any(fnmatchcase(rule, pattern) for rule in found for pattern in self.rules)


def kinds_in(outcome: Json) -> set[str]:
    """The kinds of all findings in kernels."""
    return {str(one.get("kind")) for one in _findings_in(outcome)}


def _findings_in(outcome: Json) -> list[Json]:
    found = list(outcome.get("findings") or [])
    for trial in outcome.get("trials") or []:
        found += trial["findings"]
    return found


def value_at(value: Any, path: str) -> Any:
    """The value at "kernels.0.owner" in nested objects and lists, or a value like no other."""
    for name in path.split("."):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def told_by(outcome: Json) -> str:
    """The evidence of an outcome in a few words."""
    return "; ".join(part for part in _evidence(outcome) if part)[:300]


def _texts(value: Any) -> Iterator[str]:
    """All texts in nested objects and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _evidence(outcome: Json) -> Iterator[str]:
    for name in ("when", "stage", "reason", "message", "detail"):
        yield str(outcome.get(name) or "")
    for finding in outcome.get("findings") or []:
        yield str(finding.get("rule") or finding.get("kind") or "")
    for diagnostic in outcome.get("diagnostics") or []:
        yield str(diagnostic.get("message") or "")
    exception = outcome.get("exception")
    if exception:
        yield f"{exception['type']}: {exception['message']}"
    for trial in outcome.get("trials") or []:
        for check in trial["checks"]:
            yield f"trial {trial['index']}: {check['path']} {check['problem']} {check['detail']}"
