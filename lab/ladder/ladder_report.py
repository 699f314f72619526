# SPDX-License-Identifier: Apache-2.0
"""The tables of the ladder (ladder.py): what each arm gives, with intervals.

Pure but for reading a run's files: `episodes.jsonl` of held-out tasks, `metrics.jsonl` of training.
Intervals are 95 %: of held-out figures by bootstrap over tasks, where a task's difference is its
both over tasks and over seeds, paired; of training's by Student's t over the seeds.
"""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ladder_blocks import BLOCKS_NAMED

from learn import paired, paired_runs, points

Json = dict[str, Any]
Held = Mapping[str, list[Json]]  # Each held-out task's episodes that have a score.
Shares = dict[str, float]


def held_of(folder: Path) -> Held:
    found: dict[str, list[Json]] = {}
    for line in (folder / "episodes.jsonl").read_text().splitlines():
        episode = json.loads(line)
        if episode["turns"][0]["s"] is not None:
            found.setdefault(episode["task"], []).append(episode)
    return found


def is_right(turn: Json) -> bool:
    return bool(turn["outcome"] == "pass")


def first_right(held: Held) -> Shares:
    """The share of first turns that passed, by task."""
    return shares(held, lambda episode: is_right(episode["turns"][0]))


def ever_right(held: Held) -> Shares:
    """The share of episodes that passed in some turn, by task."""
    return shares(held, lambda episode: is_right(episode["turns"][-1]))


def shares(held: Held, rule: Callable[[Json], bool]) -> Shares:
    return {task: mean(map(rule, some)) for task, some in held.items()}


def mean(values: Iterable[float]) -> float:
    some = list(values)
    return sum(some) / len(some)


def pass_at(held: Held) -> tuple[int, float]:
    """k, and the share of tasks that one of k first turns solves."""
    k = max(map(len, held.values()))
    return k, mean(max(is_right(one["turns"][0]) for one in some) for some in held.values())


def line_of(held: Held) -> str:
    """A model's results on the held-out tasks."""
    value, low, high, _ = paired(dict.fromkeys(held, 0.0), [first_right(held)])
    k, solved = pass_at(held)
    text = f"{len(held)} tasks, Avg@{k} {100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    text += f", Pass@{k} {100 * solved:.1f} %"
    if speeds(held):
        text += f", 1.5 times between the speeds of right answers in {spread_of_speed(held)}"
    if any(len(episode["turns"]) > 1 for some in held.values() for episode in some):
        text += f", right in some turn {100 * mean(ever_right(held).values()):.1f} %"
        text += f", feedback less a fresh draw {feedback_gain([held])}"
    return text


def gain(before: Held, runs: list[Held], measure: Callable[[Held], Shares]) -> str:
    value, low, high, each = paired(measure(before), [measure(run) for run in runs])
    return f"{points(value, low, high)} (each: {', '.join(f'{100 * one:+.1f}' for one in each)})"


def against(first: list[Held], runs: list[Held], measure: Callable[[Held], Shares]) -> str:
    """The difference to the first arm, where both have as many seeds."""
    if not first or len(first) != len(runs):
        return "-"
    value, low, high, each = paired_runs(list(map(measure, first)), list(map(measure, runs)))
    return f"{points(value, low, high)} (each: {', '.join(f'{100 * one:+.1f}' for one in each)})"


def feedback_less_fresh(held: Held) -> Shares:
    """The gain of a turn after a failed first turn over a fresh draw, by task.

    A fresh draw is the first turn of the task's other episodes.
    """
    found = {}
    for task, some in held.items():
        first = [is_right(one["turns"][0]) for one in some]
        differences = [is_right(one["turns"][1]) - (sum(first) - first[i]) / (len(first) - 1)
                       for i, one in enumerate(some)
                       if len(one["turns"]) > 1 and len(first) > 1]  # fmt: skip
        if differences:
            found[task] = mean(differences)
    return found


def turns_taken(held: Held) -> float:
    """The mean number of the turn that passed; one more than the turns if none did."""
    every = [one["turns"] for some in held.values() for one in some]
    last = max(map(len, every))
    return mean(len(turns) if is_right(turns[-1]) else last + 1 for turns in every)


def feedback_gain(runs: list[Held]) -> str:
    measured = [feedback_less_fresh(run) for run in runs]
    tasks = set.intersection(*map(set, measured))
    if not tasks:
        return "-"
    value, low, high, _ = paired(dict.fromkeys(sorted(tasks), 0.0), measured)
    return points(value, low, high)


# ---- Speed --------------------------------------------------------------------------------------


def speeds(held: Held) -> dict[str, list[float]]:
    """The speed-ups of right answers over eager PyTorch, by task."""
    found = {task: [one["turns"][0]["nu"] for one in some] for task, some in held.items()}
    right = {task: [nu for nu in some if nu is not None] for task, some in found.items()}
    return {task: some for task, some in right.items() if some}


def log_speeds(held: Held) -> Shares:
    return {task: mean(map(math.log, some)) for task, some in speeds(held).items()}


def speed_gain(others: list[Held], runs: list[Held]) -> str:
    """The geometric mean of the speed-ups of right answers."""
    if len(others) != len(runs) or not all(map(speeds, (*others, *runs))):
        return "-"
    value, low, high, _ = paired_runs(list(map(log_speeds, others)), list(map(log_speeds, runs)))
    return "{:.2f} times [{:.2f}, {:.2f}]".format(*map(math.exp, (value, low, high)))


def spread_of_speed(held: Held) -> str:
    """The share of tasks with two right answers whose fastest is 1.5 times the slowest."""
    several = [some for some in speeds(held).values() if len(some) > 1]
    wide = [max(some) >= 1.5 * min(some) for some in several]
    return f"{100 * mean(wide):.0f} % of {len(wide)} tasks" if wide else "no task"


def near_best(before: Held, runs: list[Held]) -> str:
    """The share of right answers within 10 % of the fastest that any of these models wrote."""
    every = [speeds(held) for held in (before, *runs)]
    best = {task: max(max(one[task]) for one in every if task in one)
            for task in set().union(*every)}  # fmt: skip

    def measure(some: dict[str, list[float]]) -> Shares:
        return {task: mean(nu >= 0.9 * best[task] for nu in nus) for task, nus in some.items()}

    value, low, high, _ = paired(measure(every[0]), [measure(one) for one in every[1:]])
    return f"{100 * mean(measure(every[0]).values()):.0f} %, {points(value, low, high)}"


def faster(held: Held) -> Shares:
    """The share of answers that are right and over 1.1 times as fast as eager, by task."""
    return shares(held, lambda episode: (episode["turns"][0]["nu"] or 0) > 1.1)


def fitting(runs: list[Held]) -> str:
    """The share that MooreEval passes of the answers that the rule of hidden blocks accepts."""
    every = [turn for run in runs for some in run.values() for one in some for turn in one["turns"]]
    accepted = [turn for turn in every if turn["outcome"] != "extraction"
                and (is_right(turn) or BLOCKS_NAMED not in turn["feedback"])]  # fmt: skip
    return f"{sum(map(is_right, accepted))} of {len(accepted)}"


# ---- Training -----------------------------------------------------------------------------------


def rows_of(home: Path) -> list[Json]:
    path = home / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def training_curve_of(homes: list[Path]) -> list[list[float]]:
    """The share of first answers that passed, for each step and each run that reached it."""
    runs = [[row["accuracy_first"] for row in rows_of(home)] for home in homes]
    longest = max(map(len, runs), default=0)
    return [[run[step] for run in runs if step < len(run)] for step in range(longest)]


def quarters(homes: list[Path], name: str) -> tuple[float, float]:
    """A metric's mean over the first and over the last quarter of the steps, over the runs."""
    runs = [rows_of(home) for home in homes]
    return (mean(row[name] for run in runs for row in run[: max(1, len(run) // 4)]),
            mean(row[name] for run in runs for row in run[-max(1, len(run) // 4) :]))  # fmt: skip


T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}  # Student's bound by number of seeds.


def second_half(homes: list[Path], name: str) -> list[float]:
    """A metric's mean over the second half of the steps, of each run."""
    return [mean(row[name] for row in run[len(run) // 2 :]) for run in map(rows_of, homes)]


def steadiness(first: list[Path], homes: list[Path], name: str) -> str:
    """Each run's mean over the second half, and the difference to the first arm's, seed by seed."""
    values = second_half(homes, name)
    text = ", ".join(f"{one:.3g}" for one in values)
    if first == homes or len(first) != len(homes) or len(homes) not in T_95:
        return text
    differences = [one - other for one, other in zip(values, second_half(first, name))]
    middle = mean(differences)
    reach = T_95[len(homes)] * statistics.stdev(differences) / math.sqrt(len(homes))
    return f"{text}: {middle:+.3g} [{middle - reach:+.3g}, {middle + reach:+.3g}]"


def training(homes: list[Path]) -> str:
    return " → ".join(f"{100 * one:.1f} %" for one in quarters(homes, "accuracy_first"))


def waits(homes: list[Path]) -> str:
    runs = [rows_of(home) for home in homes]
    parts = [sum(row["verdict_wait_s"] for row in run) / run[-1]["elapsed_s"] for run in runs]
    return f"{100 * mean(parts):.0f} %"


def rejected(homes: list[Path]) -> float:
    return float(sum(row["rejected"] for home in homes for row in rows_of(home)))


def solved_replays(homes: list[Path]) -> str:
    rows = [row for home in homes for row in rows_of(home)]
    replays = sum(row["bdr/replays"] for row in rows)
    solved = sum(row["bdr/solved"] for row in rows)
    return f"{solved:.0f} of {replays:.0f}" if replays else "-"


# ---- Tables -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """An arm's runs, the first arm's, and the first model's answers to held-out tasks."""

    before: Held
    held: list[Held]
    homes: list[Path]
    first_held: list[Held]
    first_homes: list[Path]


Columns = Mapping[str, Callable[[Row], str]]
HELD_OUT: Columns = {
    "first answers": lambda row: gain(row.before, row.held, first_right),
    "against the first arm": lambda row: against(row.first_held, row.held, first_right),
    "Pass@k": lambda row: f"{100 * mean(pass_at(one)[1] for one in row.held):.1f} %",
}
TURNS: Columns = {
    "right in some turn": lambda row: gain(row.before, row.held, ever_right),
    "the same against the first arm": lambda row: against(row.first_held, row.held, ever_right),
}
HIDDEN: Columns = {
    "feedback less a fresh draw": lambda row: feedback_gain(row.held),
    "turns to success (before, after)": lambda row:
        f"{turns_taken(row.before):.2f}, {mean(map(turns_taken, row.held)):.2f}",
}  # fmt: skip
MET: Columns = {"of answers that fit, MooreEval passes": lambda row: fitting(row.held)}
SPEED: Columns = {
    "as fast as before": lambda row: speed_gain([row.before] * len(row.held), row.held),
    "as fast as the first arm": lambda row: speed_gain(row.first_held, row.held),
    "right and over 1.1 (before)": lambda row: f"{100 * mean(faster(row.before).values()):.0f} %",
    "gain": lambda row: gain(row.before, row.held, faster),
    "the same against the first arm": lambda row: against(row.first_held, row.held, faster),
    "within 10 % of the best": lambda row: near_best(row.before, row.held),
}
REPLAYS: Columns = {"replays solved": lambda row: solved_replays(row.homes)}
DRIFT: Columns = {
    "KL, second half of each run, and against the first arm":
        lambda row: steadiness(row.first_homes, row.homes, "kl"),
    "drift": lambda row: steadiness(row.first_homes, row.homes, "drift"),
    "rejected in all": lambda row: f"{rejected(row.homes):.0f}",
}  # fmt: skip
TRAINED: Columns = {
    "in training, first and last quarter": lambda row: training(row.homes),
    "KL": lambda row: f"{quarters(row.homes, 'kl')[1]:.4f}",
    "entropy": lambda row: f"{quarters(row.homes, 'entropy')[1]:.3f}",
    "groups without spread": lambda row: f"{quarters(row.homes, 'groups_no_spread')[1]:.1f}",
    "waits for verdicts": lambda row: waits(row.homes),
}
# The columns that need held-out answers, and those that need a training curve.
COLUMNS: Mapping[str, tuple[Columns, Columns]] = {
    "A": (HELD_OUT, TRAINED),
    "B": ({**HELD_OUT, **SPEED}, TRAINED),
    "C": ({**HELD_OUT, **TURNS}, {**REPLAYS, **TRAINED}),
    "D": ({}, {**DRIFT, **TRAINED}),
    "U": ({}, TRAINED),
    "H": ({**HELD_OUT, **TURNS, **HIDDEN}, {**REPLAYS, **TRAINED}),
    "P": ({**HELD_OUT, **TURNS, **HIDDEN}, {**REPLAYS, **TRAINED}),
    "M": ({**HELD_OUT, **TURNS, **HIDDEN, **MET}, {**REPLAYS, **TRAINED}),
    "R": (HELD_OUT, TRAINED),
}


def titles_of(name: str) -> str:
    titles = ["arm", "seeds", *COLUMNS[name][0], *COLUMNS[name][1]]
    return "| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|\n"


def row_of(name: str, arm: str, row: Row) -> str:
    cells = [arm, str(len(row.homes))]
    cells += [cell(row) for cell in COLUMNS[name][0].values()]
    has_curve = all(rows_of(home) for home in row.homes)
    cells += [cell(row) if has_curve else "-" for cell in COLUMNS[name][1].values()]
    return "| " + " | ".join(cells) + " |\n"
