# SPDX-License-Identifier: Apache-2.0
"""The service's counters: for /metrics in Prometheus' text format, and for the page at /."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from musacoder.server.questions import Json

RECENT_MAX = 50
TASKS_MAX = 10_000  # The limit of tasks with times; the most recent ones are kept.
SLOWEST_MAX = 10
RATE_S = 900  # The longest span for rates.
BUCKETS_S = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


class Histogram:
    """Counts of seconds by bucket, as Prometheus has them."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*BUCKETS_S, "+Inf"), self.counts):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self.sum:.6f}"
        yield f"{name}_count {total}"


class Rate:
    """The counts of events in each of the last seconds."""

    def __init__(self) -> None:
        self._seconds: deque[list[int]] = deque()  # [second, count]

    def add(self, now: float) -> None:
        second = int(now)
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1][1] += 1
            return
        self._seconds.append([second, 1])
        while self._seconds[0][0] <= second - RATE_S:
            self._seconds.popleft()

    def per_minute(self, now: float, span_s: int) -> float:
        """The mean over the last `span_s` whole seconds."""
        first = int(now) - span_s
        count = sum(count for second, count in self._seconds if first <= second < int(now))
        return count * 60 / span_s


class Task:
    """The times of one task's verdicts."""

    def __init__(self) -> None:
        self.count = 0
        self.sum_s = 0.0
        self.max_s = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum_s += seconds
        self.max_s = max(self.max_s, seconds)


class Stats:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.started = clock()
        self.outcomes: Counter[str] = Counter()
        self.accounts: Counter[str] = Counter()
        self.responses: Counter[int] = Counter()
        self.devices: dict[tuple[str, str], list[float]] = {}  # [verdicts, last time]
        self.judging_s = Histogram()
        self.waiting_s = Histogram()
        self.rate = Rate()
        self.tasks: OrderedDict[str, Task] = OrderedDict()
        self.recent: deque[Json] = deque(maxlen=RECENT_MAX)

    @property
    def judged(self) -> int:
        return sum(self.outcomes.values())

    @property
    def seconds(self) -> float:
        """The service's age."""
        return self._clock() - self.started

    def add(self, task: str, account: str, waited_s: float, judging_s: float, reply: Json) -> None:
        """Counts a reply.  A missing field of a verdict is counted under ""."""
        now = self._clock()
        verdict = _object(reply.get("verdict"))
        kind = str(_object(verdict.get("outcome")).get("kind", "refused"))
        name = task or str(verdict.get("task", ""))[:80]
        self.outcomes[kind] += 1
        self.accounts[account] += 1
        self.judging_s.add(judging_s)
        self.waiting_s.add(waited_s)
        self.rate.add(now)
        device = (
            str(verdict.get("backend", "")),
            str(_object(verdict.get("protocol")).get("device", "")),
        )
        seen = self.devices.setdefault(device, [0, now])
        seen[0], seen[1] = seen[0] + 1, now
        self._task(name).add(judging_s)
        self.recent.append(
            {
                "time": now,
                "task": name,
                "outcome": kind,
                "reward": reply.get("reward"),
                "seconds": judging_s,
                "waited": waited_s,
                "account": account,
            }
        )

    def _task(self, name: str) -> Task:
        if name not in self.tasks:
            self.tasks[name] = Task()
            while len(self.tasks) > TASKS_MAX:
                self.tasks.popitem(last=False)
        self.tasks.move_to_end(name)
        return self.tasks[name]

    def snapshot(self) -> Json:
        """The page's data, without the queue."""
        now = self._clock()
        slowest = sorted(self.tasks.items(), key=lambda item: -item[1].sum_s / item[1].count)
        spans = (60, 300, RATE_S)
        return {
            "seconds": self.seconds,
            "judged": self.judged,
            "per_minute": {str(span): round(self.rate.per_minute(now, span), 2) for span in spans},
            "outcomes": dict(self.outcomes),
            "accounts": dict(self.accounts),
            "devices": [
                {"backend": backend, "device": device, "verdicts": int(count), "last": last}
                for (backend, device), (count, last) in self.devices.items()
            ],
            "slowest": [
                {
                    "task": name,
                    "verdicts": task.count,
                    "mean_seconds": task.sum_s / task.count,
                    "max_seconds": task.max_s,
                }
                for name, task in slowest[:SLOWEST_MAX]
            ],
            "recent": list(reversed(self.recent)),
        }

    def metrics(self, gauges: dict[str, tuple[str, float]]) -> str:
        """All of it in Prometheus' text form; gauges: names without prefix, to help and value."""
        lines: list[str] = []

        def family(name: str, kind: str, text: str, samples: Iterable[str]) -> None:
            lines.append(f"# HELP {name} {text}")
            lines.append(f"# TYPE {name} {kind}")
            lines.extend(samples)

        for name, (text, value) in gauges.items():
            full = f"musacoder_{name}"
            kind = "counter" if name.endswith("_total") else "gauge"
            family(full, kind, text, [f"{full} {value:g}"])
        for name, label, text, counts in (
            ("verdicts", "outcome", "Verdicts by outcome.", self.outcomes),
            ("questions", "account", "Judged questions by account.", self.accounts),
            ("http_responses", "status", "Responses by status.", self.responses),
        ):
            full = f"musacoder_{name}_total"
            family(full, "counter", text, _samples(full, label, counts))
        for name, text, histogram in (
            ("judging_seconds", "Seconds of judging.", self.judging_s),
            ("waiting_seconds", "Seconds before a question was judged.", self.waiting_s),
        ):
            full = f"musacoder_{name}"
            family(full, "histogram", text, histogram.lines(full))
        return "\n".join(lines) + "\n"


def _samples(name: str, label: str, counts: Counter[Any]) -> Iterator[str]:
    for value, count in sorted(counts.items()):
        text = str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        yield f'{name}{{{label}="{text}"}} {count}'


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
