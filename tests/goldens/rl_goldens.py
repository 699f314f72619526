#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/rl/golden/*.json: what the rules of docs/rl.md come to, for any language to test by.

An oracle of its own: float64 NumPy from the formulas, on padded tables where the C++ walks packed
spans, with gradients by the complex-step method (f(x + ih).imag / h, exact to rounding) where the
C++ has them by hand.  Deterministic: results are rounded to 10 digits and random numbers come from
RandomState, whose streams are frozen, so that another NumPy writes the same bytes.

null is a value that is not there: no reward, no option, or, among log-probabilities of tokens that
are not trained, anything at all, NaN too, since they are never read.  Among the generator's
log-probabilities of trained tokens it is NaN: the generator does not know that one.

usage: python3 tests/goldens/rl_goldens.py [--check] [FOLDER]
"""

import json
import math
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

FOLDER = pathlib.Path(__file__).parents[2] / "src" / "rl" / "golden"
TOLERANCE = 1e-6
DIGITS = 10
COMPLEX_STEP = 1e-40

Case = dict[str, Any]
Reward = float | None


def rounded(value: Any) -> Any:
    """The value for JSON: plain Python, floats at DIGITS digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, np.generic):
        return rounded(value.item())
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") + 0.0  # + 0.0: no negative zero.
    return value


# ---- Score and PrimeEcho ------------------------------------------------------------------------


def on_grid(nu: float, dead_zone: float, step: float) -> float:
    if nu <= dead_zone:
        return 1.0
    return nu if step == 0 else math.floor(nu / step + 0.5) * step


def score(case: Case) -> float | None:
    outcome = case["outcome"]
    if outcome in ("infra", "unsupported"):
        return None
    if outcome == "pass":
        if case["nu"] is None:
            return 1.0
        nu = on_grid(case["nu"], case["dead_zone"], case["step"])
        return 1 + float(case["lambda"] * np.clip(nu - 1, 0, case["nu_max"]))
    if outcome == "wrong" and case["q"] > 0:
        return -0.5 + 0.5 * float(case["q"])
    return -1.0


def score_cases() -> list[Case]:
    paper = {"lambda": 0.25, "nu_max": 2.0, "dead_zone": 1.05, "step": 0.05}
    plain = {**paper, "dead_zone": 0.0, "step": 0.0}
    failures = ["extraction", "illegal", "compile", "runtime", "timeout", "oom"]
    cases: list[Case] = [{"outcome": name, **paper} for name in failures]
    cases += [{"outcome": name, **paper} for name in ("infra", "unsupported")]
    cases += [{"outcome": "wrong", "q": q, **paper} for q in (0.0, 0.01, 0.2, 0.5, 0.9, 0.99)]
    speeds = [None, 0.0, 0.3, 0.99, 1.0, 1.01, 1.05, 1.06, 1.08, 1.12, 1.3, 1.8, 2.0, 2.99, 3.0]
    cases += [{"outcome": "pass", "nu": nu, **paper} for nu in [*speeds, 3.5, 100.0]]
    cases += [{"outcome": "pass", "nu": nu, **plain} for nu in (0.3, 1.01, 1.06, 1.83, 3.5)]
    cases += [{"outcome": "pass", "nu": 4.0, **paper, "lambda": 0.5, "nu_max": 5.0}]
    return [{**case, "s": score(case)} for case in cases]


def prime_echo(s: list[Reward], alpha: float, b_early: list[float]) -> Reward:
    if None in s:
        return None
    table = np.array(s, dtype=float)
    passes = np.flatnonzero(table >= 1)
    early = b_early[passes[0]] if passes.size and passes[0] < len(b_early) else 0.0
    return float(alpha * table[0] + (1 - alpha) * table.max() + early)


def prime_echo_cases() -> list[Case]:
    def q(share: float) -> float:
        return -0.5 + 0.5 * share

    turns: list[list[Reward]] = [
        [1.0], [1.5], [q(0.9), 1.0], [q(0.5), q(0.9), 1.0], [q(0.99), q(0.99), q(0.99)],
        [-1.0, 1.5], [-1.0, 1.0], [-1.0, -1.0, 1.0], [-1.0, q(0.9), q(0.9)], [-1.0, -1.0, -1.0],
        [-1.0], [-1.0, -1.0, -1.0, 1.0], [q(0.9), -1.0, q(0.5)], [None], [-1.0, None],
        [None, 1.0], [-1.0, None, 1.0],
    ]  # fmt: skip
    settings = [(0.75, [0.2, 0.1, 0.0]), (0.0, [0.0, 0.0, 0.0]), (1.0, [0.2])]
    return [
        {"s": s, "alpha": alpha, "b_early": early, "R": prime_echo(s, alpha, early)}
        for alpha, early in settings
        for s in turns
    ]


# ---- Advantage ----------------------------------------------------------------------------------


def group_advantage(rewards: Sequence[Reward], options: Case) -> tuple[str, list[Reward]]:
    scored = np.array([reward for reward in rewards if reward is not None], dtype=float)
    if scored.size < 2 or scored.size < len(rewards) / 2:
        return "dropped", [None] * len(rewards)
    if np.ptp(scored) <= options["spread_min"]:
        return "no_spread", [None if reward is None else 0.0 for reward in rewards]
    scale = 1.0
    if options["scale"] == "std":
        scale = max(np.std(scored, ddof=1), options["std_floor"]) + options["eps"]
    mean = scored.mean()
    return "spread", [None if r is None else float((r - mean) / scale) for r in rewards]


def advantage_options(**changes: Any) -> Case:
    return {"scale": "std", "eps": 1e-6, "spread_min": 1e-6, "std_floor": 0.0, **changes}


def advantage_cases() -> list[Case]:
    repaired = [-0.4] + [-1.0] * 7  # All first turns fail and one is repaired.
    groups: list[tuple[Sequence[Reward], Case]] = [
        ([1.0, 1.0, 1.0, 1.0], {}),
        ([1.0, 0.0, 0.0, 0.0], {}),
        ([0.1] * 8, {}),
        ([0.1] * 7 + [0.1 + 5e-7], {}),
        ([0.1] * 7 + [0.1 + 2e-6], {}),
        ([1.2], {}),
        ([1.2, None], {}),
        ([1.2, -1.0, None], {}),
        ([1.2, None, None], {}),
        ([1.2, -1.0, None, None], {}),
        ([1.2, -1.0, None, None, None], {}),
        ([1.2, -1.0, None, 0.3125], {}),
        ([None, -1.0, -1.0, -1.0, 1.7, None, -0.4, -1.0], {}),
        ([None] * 4, {}),
        (repaired, {}),
        (repaired, {"std_floor": 0.5}),
        (repaired, {"scale": "none"}),
        ([1.2, -1.0, None, 0.3125], {"eps": 1e-4}),
    ]
    cases = []
    for rewards, changes in groups:
        options = advantage_options(**changes)
        fate, advantage = group_advantage(rewards, options)
        cases.append({"rewards": rewards, **options, "fate": fate, "advantage": advantage})
    return cases


# ---- Losses of tokens; x may be complex ---------------------------------------------------------


def held(x: np.ndarray) -> np.ndarray:
    return np.where(x.real > 20, 20, np.where(x.real < -20, -20, x))


def larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(a.real >= b.real, a, b)


def smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(a.real <= b.real, a, b)


def clipped_loss(log_ratio: np.ndarray, A: np.ndarray, options: Case) -> np.ndarray:
    r = np.exp(held(log_ratio))
    clipped = larger(smaller(r, 1 + options["eps_high"] + 0 * r), 1 - options["eps_low"] + 0 * r)
    return larger(-r * A, -clipped * A)


def kl(log_u: np.ndarray) -> np.ndarray:
    x = held(log_u)
    return np.asarray(np.expm1(x) - x)


def derivative(f: Callable[[np.ndarray], np.ndarray], x: float) -> float:
    return float(f(np.array(x + 1j * COMPLEX_STEP)).imag / COMPLEX_STEP)


def clip_options(**changes: Any) -> Case:
    return {"eps_low": 0.2, "eps_high": 0.28, **changes}


def clipped_by(r: float, A: float, options: Case) -> str:
    if A > 0:
        return "high" if r > 1 + options["eps_high"] else "no"
    if A < 0 and r < 1 - options["eps_low"]:
        return "low"
    return "no"


def objective_cases() -> list[Case]:
    points = [(math.log(r), A) for r in (0.7, 1.0, 1.3) for A in (1.0, -1.0, 0.0)]
    points += [(x, A) for x in (-30.0, -5.0, -0.1, 0.2, 0.24, 0.26, 3.0, 19.0) for A in (1.5, -0.5)]
    points += [(21.0, -0.5), (21.0, 0.5)]
    table = [(log_ratio, A, clip_options()) for log_ratio, A in points]
    table += [(0.12, 1.0, clip_options(eps_high=0.1)), (-0.12, -1.0, clip_options(eps_low=0.1))]
    cases = []
    for exact, A, options in table:
        log_ratio = rounded(exact)

        def f(x: np.ndarray, A: float = A, options: Case = options) -> np.ndarray:
            return clipped_loss(x, np.array(A), options)

        cases.append(
            {
                "log_ratio": log_ratio,
                "A": A,
                **options,
                "loss": float(f(np.array(log_ratio + 0j)).real),
                "gradient": derivative(f, log_ratio),
                "clipped": clipped_by(math.exp(min(log_ratio, 20)), A, options),
            }
        )
    return cases


def kl_cases() -> list[Case]:
    cases = []
    for log_u in (0.5, -0.5, 0.0, 1e-4, -1e-4, 2.0, -3.0, 10.0, 25.0, -25.0):
        # The argument of kl is log pi_ref - log pi_new.
        with_new = lambda new, log_u=log_u: kl(log_u - new)
        cases.append({"log_u": log_u, "k3": float(kl(np.array(log_u + 0j)).real),
                      "k3_gradient": derivative(with_new, 0.0)})  # fmt: skip
    return cases


# ---- Aggregation --------------------------------------------------------------------------------


def weight_table(mode: str, length_max: float, mask: np.ndarray) -> np.ndarray:
    """The weight of each token in a padded table, sequences by tokens."""
    num_sequences = mask.shape[0]
    lengths = np.maximum(mask.sum(axis=1, keepdims=True), 1)
    if mode == "sequence_mean":
        return np.asarray(mask / lengths / num_sequences)
    if mode == "token_mean":
        return np.asarray(mask / max(mask.sum(), 1))
    return np.asarray(mask / (num_sequences * length_max))


def aggregation_cases() -> list[Case]:
    cases = []
    for mode in ("sequence_mean", "token_mean", "dr_grpo"):
        for lengths, kept in (
            ([1, 1000], [True, True]),
            ([1, 1000], [False, True]),
            ([1, 1000], [True, False]),
            ([3, 0, 5], [True, True, True]),
            ([7, 2, 2, 4], [True, False, True, False]),
        ):
            token_loss = [round(2.0 - 0.75 * i, 2) for i in range(len(lengths))]
            mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(float)
            weights = weight_table(mode, 2000.0, mask)
            losses = np.array(token_loss)[:, None] * np.array(kept)[:, None]
            cases.append(
                {
                    "mode": mode,
                    "length_max": 2000.0,
                    "lengths": lengths,
                    "kept": kept,
                    "token_loss": token_loss,  # The loss of every token of a sequence.
                    "weight": weights[:, 0] * (np.array(lengths) > 0),
                    "loss": float((weights * losses).sum()),
                }
            )
    return cases


# ---- MirrorPop ----------------------------------------------------------------------------------


def drift_of(case: Case) -> Case:
    mask = np.array(case["mask"] * case["repeat"], dtype=bool)
    old, rollout = (
        np.array([np.nan if x is None else x for x in case[name] * case["repeat"]])[mask]
        for name in ("logp_old", "logp_rollout")
    )
    num_tokens = int(mask.sum())
    known = ~np.isnan(rollout)  # The generator may not know the log-probability of a token.
    log_rho = (old - rollout)[known]
    if log_rho.size == 0:
        return {"num_tokens": num_tokens, "mean_abs": 0.0, "mean_signed": 0.0, "kept": False}
    mean_abs = np.abs(log_rho).mean()
    return {
        "num_tokens": num_tokens,
        "mean_abs": mean_abs,
        "mean_signed": log_rho.mean(),
        "kept": bool(mean_abs <= case["delta"] and 2 * log_rho.size > num_tokens),
    }


def mirror_pop_cases() -> list[Case]:
    def case(name: str, old: Sequence[Reward], rollout: Sequence[Reward], **changes: Any) -> Case:
        return {
            "name": name,
            "logp_old": old,
            "logp_rollout": rollout,
            "mask": [1] * len(old),
            "repeat": 1,
            "delta": 0.05,
            **changes,
        }

    base = [-0.5 - 0.03125 * (i % 16) for i in range(40)]
    noise = [0.0016 if i % 2 else -0.0016 for i in range(40)]
    noise[0], noise[21] = 1.0, -1.0
    alternating = [round(x - e, 4) for x, e in zip(base, noise)]
    exact = [-1.0, -2.0, -0.5, -1.5]
    apart = [-1.0625, -1.9375, -0.4375, -1.5625]  # 1/16 each, which doubles have exactly.
    cases = [
        case("alternating signs cancel in the mean", base, alternating, repeat=100),
        case("equal", exact, exact),
        case("at delta", exact, apart, delta=0.0625),
        case("just above delta", exact, apart, delta=0.0624),
        case("no trained token", exact, apart, mask=[0] * 4),
        case("padding", [*exact, None], [*exact, None], mask=[1, 1, 1, 1, 0]),
        case("a forgotten mask would reject", exact, [-1.0, -2.0, -0.5, 0.0], mask=[1, 1, 1, 0]),
        case("the same without the mask", exact, [-1.0, -2.0, -0.5, 0.0]),
        case("two turns", [*exact, -3.0], [*exact, -7.0], mask=[1, 1, 1, 1, 0]),
        case("40 of 8192 at -5 nat", [-6.0] + [-1.0] * 204, [-1.0] * 205, repeat=40),
        case("rare tokens far off", [-11.0] + [-1.0] * 255, [-1.0] * 256),
        case("one token that the generator does not know", exact, [None, *exact[1:]]),
        case("one such token in a sequence that is off", exact, [None, -2.5, -0.5, -1.5]),
        case("half of the tokens not known", exact, [None, None, *exact[2:]]),
        case("no token known", exact, [None] * 4),
    ]
    return [{**one, **drift_of(one)} for one in cases]


def minimum_cases() -> list[Case]:
    table: list[tuple[list[Reward], list[int]]] = [
        ([-1.0, -0.4, None], [2]),
        ([-1.0, None, None, 1.2], [1]),  # The other one without a reward is infra.
        ([1.2, None], [1]),
        ([None, None], [0, 1]),
        ([-1.0, 1.2], []),
    ]
    cases = []
    for rewards, unsupported in table:
        least = min((reward for reward in rewards if reward is not None), default=None)
        found = [least if i in unsupported else reward for i, reward in enumerate(rewards)]
        cases.append({"rewards": rewards, "unsupported": unsupported, "R": found})
    return cases


# ---- Buffered Dynamic Retry ---------------------------------------------------------------------


def mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def uniform(seed: int, step: int, slot: int) -> float:
    return (mix((mix((mix(seed) + step) % 2**64) + slot) % 2**64) >> 11) / 2**53


def uniform_cases() -> list[Case]:
    ids = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (42, 17, 63), (2**53 - 1, 10**6, 511)]
    return [
        {"seed": a, "step": b, "slot": c, "u_times_2_to_53": int(uniform(a, b, c) * 2**53)}
        for a, b, c in ids
    ]


class Retries:
    """The items by task; the dict's order is that of the queue."""

    def __init__(self, options: Case) -> None:
        self.options = options
        self.queue: dict[str, Case] = {}
        self.replays: dict[str, int] = {}

    def is_open(self, task: str) -> bool:
        return bool(self.replays.get(task, 0) < self.options["replays_max"])

    def insert(self, failures: list[Case]) -> None:
        for failure in sorted(failures, key=lambda f: (f["step"], f["group"])):
            task = failure["task"]
            if not self.is_open(task):
                continue
            old = self.queue.get(task, failure)
            if (old["step"], old["group"]) <= (failure["step"], failure["group"]):
                drawn = old.get("drawn", -1)
                self.queue[task] = {**failure, "drawn": drawn}
            while len(self.queue) > self.options["capacity"]:
                del self.queue[next(iter(self.queue))]

    def draw(self, u: float, step: int) -> Case | None:
        if u >= self.options["probability"]:
            return None
        for task, item in self.queue.items():
            if item["step"] < step and item["drawn"] < step:
                item["drawn"] = step
                self.replays[task] = self.replays.get(task, 0) + 1
                if not self.is_open(task):
                    del self.queue[task]
                return item
        return None

    def solved(self, task: str) -> None:
        self.queue.pop(task, None)
        self.replays.pop(task, None)


def bdr_case(name: str, options: Case, seed: int, steps: int, tasks: int, slots: int) -> Case:
    """A run of its own: each operation with what comes of it."""
    random = np.random.RandomState(seed)
    buffer = Retries(options)
    operations: list[Case] = []
    for step in range(steps):
        for slot in range(slots):
            u = uniform(seed, step, slot)
            drawn = buffer.draw(u, step)
            found = None if drawn is None else {"task": drawn["task"], "code": drawn["code"]}
            operations.append({"op": "draw", "step": step, "slot": slot, "found": found})
            if drawn is not None and random.random() < 0.3:
                buffer.solved(drawn["task"])
                operations.append({"op": "solved", "task": drawn["task"]})
        failures = [
            {
                "task": f"task{random.randint(tasks)}",
                "code": f"code of step {step}, group {group}",
                "step": int(step - (random.random() < 0.1 and step > 0)),
                "group": group,
            }
            for group in range(slots)
            if random.random() < 0.5
        ]
        failures = [failures[i] for i in random.permutation(len(failures))]
        buffer.insert(failures)
        operations.append({"op": "insert", "failures": failures, "queue": list(buffer.queue)})
    return {
        "name": name,
        "seed": seed,
        **options,
        "operations": operations,
        "codes": [item["code"] for item in buffer.queue.values()],
        "replays": buffer.replays,
    }


def bdr_cases() -> list[Case]:
    def options(**changes: Any) -> Case:
        return {"capacity": 256, "probability": 0.1, "replays_max": 2, **changes}

    return [
        bdr_case("few tasks, often drawn", options(probability=0.5), 1, 12, 6, 6),
        bdr_case("overflow", options(capacity=4, probability=0.2), 2, 12, 40, 8),
        bdr_case("one replay", options(capacity=8, probability=0.4, replays_max=1), 3, 10, 10, 6),
        bdr_case("switched off", options(probability=0.0), 4, 4, 10, 4),
    ]


def choice_cases() -> list[Case]:
    def candidate(s: float, stage: int, code: str) -> Case:
        return {"s": s, "stage": stage, "code": code}

    groups = [
        [candidate(-1.0, 3, "a"), candidate(-0.1, 7, "bbbb"), candidate(-0.4, 7, "c")],
        [candidate(-1.0, 0, "a"), candidate(-1.0, 6, "bbbb"), candidate(-1.0, 3, "c")],
        [candidate(-1.0, 6, "aaa"), candidate(-1.0, 6, "bb"), candidate(-1.0, 0, "c")],
        [candidate(-0.25, 7, "x")],
    ]
    order = lambda c: (-c["s"], -c["stage"], len(c["code"]))
    return [{"candidates": g, "chosen": g.index(min(g, key=order))} for g in groups]


def code_cases() -> list[Case]:
    """The parts of an answer that a replay and the next turn of its conversation show."""
    module = "import torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
    fenced = f"```python\n{module}```\n"
    draft = f"```python\n{module.replace('pass', 'draft = 1')}```\n"
    use = "```python\nclass ModelNew: ...\n```\n"
    prose = f"Here it is.\n{fenced}It is fast.\n"
    table = [
        (fenced, fenced, fenced),
        (prose, fenced, prose),
        (f"<think>\nA draft:\n{draft}\n</think>\n\n{prose}", fenced, prose),
        (f"A draft:\n{draft}</think>\n{prose}", fenced, prose),
        (f"<thinking>\n{draft}</thinking>{fenced}", fenced, fenced),
        (f"{draft}Better:\n{fenced}", fenced, f"{draft}Better:\n{fenced}"),
        (f"{fenced}As in:\n{use}", fenced, f"{fenced}As in:\n{use}"),
        (fenced.removesuffix("```\n"), fenced, fenced.removesuffix("```\n")),
        (module, fenced, module),
        (f"~~~\n{module}~~~\n", fenced, f"~~~\n{module}~~~\n"),
        (f"```cpp\nint x;\n```\n{fenced}", fenced, f"```cpp\nint x;\n```\n{fenced}"),
        ("I cannot.\n", "I cannot.\n", "I cannot.\n"),
        ("<think>\nLong.\n</think>\nI cannot.\n", "I cannot.\n", "I cannot.\n"),
        ("<think>\nwithout an end", "", ""),
        (f"<think>\n{draft}", "", ""),
        ("a < b and x<think>", "a < b and x<think>", "a < b and x<think>"),
    ]
    return [{"answer": answer, "code": code, "visible": seen} for answer, code, seen in table]


# ---- A whole step -------------------------------------------------------------------------------


def step_options(**changes: Any) -> Case:
    mirror = {"delta": 0.05}
    return {
        "beta": 0.001,
        "mode": "sequence_mean",
        "length_max": 16.0,
        "mirror_pop": mirror,
        **clip_options(),
        **advantage_options(),
        **changes,
    }


def table_of(batch: Case, name: str) -> np.ndarray:
    """Packed tokens as sequences by tokens, padded with what must not matter."""
    lengths = np.diff([0, *batch["sequence_ends"]])
    table = np.full((len(lengths), max([*lengths, 1])), np.nan)
    begin = 0
    for i, length in enumerate(lengths):
        values = batch[name][begin : begin + length]
        table[i, :length] = [np.nan if x is None else x for x in values]
        begin += length
    return table


def plan(batch: Case, options: Case) -> tuple[list[Reward], np.ndarray]:
    """A of each sequence (None: not in the loss) and the table of weights."""
    advantages: list[Reward] = []
    for begin, end in zip([0, *batch["group_ends"]], batch["group_ends"]):
        advantages += group_advantage(batch["rewards"][begin:end], options)[1]
    mask = np.nan_to_num(table_of(batch, "mask"))
    if options["mirror_pop"] is not None:
        old, rollout = table_of(batch, "logp_old"), table_of(batch, "logp_rollout")
        for i in range(len(advantages)):
            row = mask[i] > 0
            case = {
                "logp_old": old[i][row].tolist(),
                "logp_rollout": rollout[i][row].tolist(),
                "mask": [1] * int(row.sum()),
                "repeat": 1,
                **options["mirror_pop"],
            }
            if not drift_of(case)["kept"]:
                advantages[i] = None
    return advantages, weight_table(options["mode"], options["length_max"], mask)


def step_value(
    batch: Case, options: Case, new: np.ndarray, planned: tuple[list[Reward], np.ndarray]
) -> tuple[complex, complex]:
    """Loss of the policy and KL, of a table of log-probabilities that may be complex."""
    advantages, weights = planned
    used = (weights > 0) & np.array([A is not None for A in advantages])[:, None]
    A = np.array([0.0 if A is None else A for A in advantages])[:, None] + np.zeros(weights.shape)
    old = np.where(used, table_of(batch, "logp_old"), 0)
    new = np.where(used, new, 0)
    policy = np.where(used, weights * clipped_loss(new - old, A, options), 0).sum()
    if batch["logp_ref"] is None:
        return policy, 0j
    ref = np.where(used, table_of(batch, "logp_ref"), 0)
    return policy, np.where(used, weights * kl(ref - new), 0).sum()


def shares(batch: Case, options: Case, planned: tuple[list[Reward], np.ndarray]) -> Case:
    advantages, weights = planned
    new, old = table_of(batch, "logp_new"), table_of(batch, "logp_old")
    fates = [
        clipped_by(math.exp(new[i, t] - old[i, t]), A, options)
        for i, A in enumerate(advantages)
        if A is not None
        for t in np.flatnonzero(weights[i] > 0)
    ]
    return {
        "num_tokens": len(fates),
        "clipped_low": fates.count("low"),
        "clipped_high": fates.count("high"),
    }


def step_case(name: str, batch: Case, options: Case) -> Case:
    planned = plan(batch, options)
    new = table_of(batch, "logp_new")
    policy, divergence = (part.real for part in step_value(batch, options, new + 0j, planned))
    gradient = []
    for i, length in enumerate(np.diff([0, *batch["sequence_ends"]])):
        for t in range(length):
            moved = new + 0j
            moved[i, t] += 1j * COMPLEX_STEP
            one, other = step_value(batch, options, moved, planned)
            gradient.append(float((one + options["beta"] * other).imag / COMPLEX_STEP))
    return {
        "name": name,
        "options": options,
        "batch": batch,
        "in_loss": [A is not None for A in planned[0]],
        "advantage": planned[0],
        "policy": policy,
        "kl": divergence,
        "loss": policy + options["beta"] * divergence,
        "gradient": gradient,
        **shares(batch, options, planned),
    }


def random_batch(seed: int) -> Case:
    """Three groups: one with an infra hole, one without spread, one that is dropped."""
    random = np.random.RandomState(seed)
    rewards: list[Reward] = [1.2, -1.0, None, -0.4, 0.2, 0.2, 0.2, None, None, 1.0]
    lengths = [5, 3, 4, 6, 2, 0, 7, 3, 2, 4]
    total = sum(lengths)
    old = -random.exponential(1.0, total).round(4)
    batch: Case = {
        "sequence_ends": np.cumsum(lengths).tolist(),
        "group_ends": [4, 7, 10],
        "rewards": rewards,
        "mask": (random.random(total) < 0.8).astype(int).tolist(),
        "logp_old": old.tolist(),
        "logp_new": (old + random.normal(0, 0.3, total)).round(4).tolist(),
        "logp_rollout": (old + random.normal(0, 0.03, total)).round(4).tolist(),
        "logp_ref": (old + random.normal(0, 0.4, total)).round(4).tolist(),
    }
    for t in range(5 + 3 + 4, 5 + 3 + 4 + 6):  # One sequence that the generator saw otherwise.
        batch["logp_rollout"][t] = round(batch["logp_old"][t] + (0.3 if t % 2 else -0.3), 4)
    for t in range(total):  # Nobody may read what is not trained.
        if batch["mask"][t] == 0:
            for key in ("logp_old", "logp_new", "logp_rollout", "logp_ref"):
                batch[key][t] = None
    return batch


def step_cases() -> list[Case]:
    batch = random_batch(7)
    no_ref = {**batch, "logp_ref": None}
    all_off = {**batch, "logp_rollout": [None if x is None else x - 1 for x in batch["logp_old"]]}
    table = [
        ("defaults", batch, step_options()),
        ("token mean", batch, step_options(mode="token_mean", beta=0.1)),
        ("Dr.GRPO", batch, step_options(mode="dr_grpo", scale="none")),
        ("without MirrorPop", batch, step_options(mirror_pop=None)),
        ("without a reference", no_ref, step_options(beta=0.0)),
        ("std floor", batch, step_options(std_floor=2.0)),
        ("all rejected", all_off, step_options()),
        ("another batch", random_batch(8), step_options(beta=0.05)),
    ]
    return [step_case(*row) for row in table]


# ---- Files --------------------------------------------------------------------------------------


def files() -> dict[str, dict[str, list[Case]]]:
    return {
        "score": {"cases": score_cases()},
        "prime_echo": {"cases": prime_echo_cases()},
        "advantage": {"cases": advantage_cases(), "minimum": minimum_cases()},
        "objective": {"cases": objective_cases()},
        "kl": {"cases": kl_cases()},
        "aggregation": {"cases": aggregation_cases()},
        "mirror_pop": {"cases": mirror_pop_cases()},
        "bdr": {
            "cases": bdr_cases(),
            "uniform": uniform_cases(),
            "choice": choice_cases(),
            "code": code_cases(),
        },
        "step": {"cases": step_cases()},
    }


def text_of(tables: dict[str, list[Case]]) -> str:
    """One case a line."""
    lines = [
        f"{json.dumps(name)}: [\n"
        + ",\n".join(json.dumps(rounded(case), allow_nan=False) for case in cases)
        + "\n]"
        for name, cases in tables.items()
    ]
    return f'{{"tolerance": {TOLERANCE},\n' + ",\n".join(lines) + "}\n"


def main(arguments: list[str]) -> int:
    checks = "--check" in arguments
    folders = [argument for argument in arguments if argument != "--check"]
    folder = pathlib.Path(folders[0]) if folders else FOLDER
    stale = []
    for name, tables in files().items():
        path, text = folder / f"{name}.json", text_of(tables)
        if not checks:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        print(f"not what tests/goldens/rl_goldens.py writes: {', '.join(stale)}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
