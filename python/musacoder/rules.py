# SPDX-License-Identifier: Apache-2.0
"""The rules of the method, shared by slime, verl and TRL (slime.py, verl_hooks.py, trl_trainer.py).

    PrimeEcho        the reward R of an episode of several turns
    with_minimum     an unsupported answer gets the least reward of its group
    advantages       each sample of a prompt against the others
    MirrorPop        drops sequences on which trainer and generator disagree
    visible          an answer without its reasoning, as the next turn of its conversation shows it
    RetryBuffer      Buffered Dynamic Retry (BDR): failed tasks come back with their failed code

The formulas, constants and edge cases are those of the C++ library src/rl (docs/rl.md), and the
golden files of that library hold both to the same numbers (tests/plugins/rules_test.py).  The
module needs the standard library; only `mirror_pop` takes tensors, so it needs torch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PASSED = 1.0  # A score from here on belongs to a correct and legal answer; all others are below 0.
ALPHA = 0.75  # Weight of the first turn in PrimeEcho, from the paper.
EARLY = (0.2, 0.1, 0.0)  # PrimeEcho's bonus by turn of the first pass.
DELTA = 0.05  # MirrorPop's bound on mean |log rho|.
_EPSILON = 1e-6
_SPEED_LAMBDA = 0.25

Reward = float | None  # None: the verdict does not judge the answer (infra, unsupported).


# ---- Reward of an episode -----------------------------------------------------------------------


def training_score(score: Reward, dead_zone: float = 1.05, step: float = 0.05) -> Reward:
    """The service's score with its speed-up on a grid, so that noise of timing earns nothing.

    A speed-up up to the dead zone counts as 1; above it is the nearest multiple of `step`.  Scores
    of failed answers, and answers without a score, come back as they are.  Assumes lambda = 0.25,
    the service's default.
    """
    if score is None or score < PASSED:
        return score
    speedup = 1 + (score - 1) / _SPEED_LAMBDA
    if speedup <= dead_zone:
        return PASSED
    return 1 + _SPEED_LAMBDA * (math.floor(speedup / step + 0.5) * step - 1)


def prime_echo(
    scores: Sequence[Reward], alpha: float = ALPHA, early: Sequence[float] = EARLY
) -> Reward:
    """R = alpha s_1 + (1 - alpha) max_t s_t + early[first turn that passed].

    `scores` are those of the episode's turns in order.  None if a turn has no score, since the
    later turns would have been different.
    """
    known = [score for score in scores if score is not None]
    if not scores or len(known) < len(scores):
        return None
    first_pass = next((t for t, score in enumerate(known) if score >= PASSED), len(early))
    bonus = early[first_pass] if first_pass < len(early) else 0.0
    return alpha * known[0] + (1 - alpha) * max(known) + bonus


def reward_of_episode(scores: Sequence[Reward], turns: int) -> Reward:
    """The episode's reward: PrimeEcho's R, or s if the run has only one turn."""
    if turns == 1 and scores:
        return scores[0]
    return prime_echo(scores)


# ---- Advantage ----------------------------------------------------------------------------------


def with_minimum(rewards: Sequence[Reward], is_unsupported: Sequence[bool]) -> list[Reward]:
    """A group's rewards, with the least of the other rewards for unsupported answers.

    Otherwise an answer that the verifier does not support would fare better than a failure, and a
    policy would learn to write such answers.  None stays None where no sample has a reward.
    """
    least = min((reward for reward in rewards if reward is not None), default=None)
    return [
        least if reward is None and unsupported else reward
        for reward, unsupported in zip(rewards, is_unsupported, strict=True)
    ]


def advantages(
    rewards: Sequence[Reward],
    *,
    eps: float = _EPSILON,
    spread_min: float = _EPSILON,
    std_floor: float = 0.0,
    scale_by_std: bool = True,
) -> list[float | None]:
    """(R - mean) / (max(std, std_floor) + eps) of one prompt's samples, std with n - 1.

    None for a sample that is in no loss: one without a reward, and all of a group in which fewer
    than two or fewer than half have one.  Exactly 0 where all rewards are equal.
    """
    known = [reward for reward in rewards if reward is not None]
    if len(known) < 2 or 2 * len(known) < len(rewards):
        return [None] * len(rewards)
    if not has_spread(rewards, spread_min):
        return [None if reward is None else 0.0 for reward in rewards]
    mean = statistics.fmean(known)
    scale = 1.0
    if scale_by_std:
        scale = max(statistics.stdev(known), std_floor) + eps
    return [None if reward is None else (reward - mean) / scale for reward in rewards]


def has_spread(rewards: Sequence[Reward], spread_min: float = _EPSILON) -> bool:
    """True if the group's rewards differ, among those that exist."""
    known = [reward for reward in rewards if reward is not None]
    return bool(known) and max(known) - min(known) > spread_min


# ---- MirrorPop ----------------------------------------------------------------------------------


def mirror_pop(
    logp_old: torch.Tensor,
    logp_rollout: torch.Tensor,
    mask: torch.Tensor,
    delta: float = DELTA,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(kept, drift) of each sequence; kept where drift = mean |log rho| <= delta.

    log rho = logp_old - logp_rollout of the trained tokens (mask != 0), all [sequences, tokens].
    Both log-probabilities are of the same weights, by the trainer and by the generator.  A token
    with an unknown generator log-probability (NaN) is not counted; a sequence with at most half of
    its tokens known, or without trained tokens, is rejected.  Masked tokens are never read; NaN
    there is harmless.
    """
    import torch

    trained = mask != 0
    counted = trained & ~torch.isnan(logp_rollout)
    log_rho = (logp_old - logp_rollout).detach().float()
    magnitude = torch.where(counted, log_rho.abs(), torch.zeros_like(log_rho))
    counts = counted.sum(dim=-1)
    drift = magnitude.sum(dim=-1) / counts.clamp(min=1)
    is_known = 2 * counts > trained.sum(dim=-1)
    kept = (drift <= delta) & is_known  # False if the trainer's log-probability is NaN.
    return kept, drift


# ---- Answers in later prompts -------------------------------------------------------------------

_TAGS = "think|thinking|thought|reasoning"
_CLOSED = re.compile(f"</(?:{_TAGS})>")
_OPENED = re.compile(f"^[ \\t]*(<(?:{_TAGS})>)", re.MULTILINE)
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})(.*)")
_IMPORT = re.compile(r"^[ \t]*(?:import|from)\b", re.MULTILINE)
_PYTHON = re.compile(r"^(?:(?:import|from|class|def)\b|@)", re.MULTILINE)
_MODEL_NEW = re.compile(r"^[ \t]*class ModelNew\b", re.MULTILINE)


def visible(answer: str) -> str:
    """The answer without its reasoning (docs/legality.md): what the next turn shows of it.

    Chat templates differ in how they show the reasoning of an earlier turn.  All hosts drop it
    before the template sees the answer, so that their prompts are the same.
    """
    closed = [found.end() for found in _CLOSED.finditer(answer)]
    begin = closed[-1] if closed else 0
    opened = _OPENED.search(answer, begin)
    return answer[begin : opened.start(1) if opened else len(answer)].lstrip("\n")


def code_of(answer: str) -> str:
    """The module in an answer, between fences: what a replay shows of it.

    An answer without a module is kept without its reasoning.  The verifier's own extraction
    (docs/legality.md) has more rules for odd answers.
    """
    text = visible(answer)
    modules = [block for block in _blocks(text) if _MODEL_NEW.search(block)]
    modules = [module for module in modules if _IMPORT.search(module)] or modules
    if not modules and _MODEL_NEW.search(text) and (begin := _PYTHON.search(text)):
        modules = [text[begin.start() :]]
    return f"```python\n{modules[-1].rstrip()}\n```\n" if modules else text


def _blocks(text: str) -> list[str]:
    """The texts between fences.  A fence with a language ends a block that is open, too."""
    blocks: list[str] = []
    opening = ""
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line)
        is_end = fence is not None and opening != "" and fence[1].startswith(opening)
        if opening and not is_end:
            blocks[-1] += line
        elif fence is not None and (not is_end or fence[2].strip()):
            opening = fence[1]
            blocks.append("")
        else:
            opening = ""
    return blocks


# ---- Buffered Dynamic Retry ---------------------------------------------------------------------

# The stages at which a candidate can fail, in order.
STAGES = ("extraction", "legality", "record", "compile", "load", "init", "forward", "comparison")


def failed_stage(outcome: dict[str, Any]) -> str | None:
    """The stage of STAGES at which a verdict's `outcome` failed; None if it is not a failure."""
    kind = outcome["kind"]
    if kind in ("extraction", "compile"):
        return str(kind)
    if kind == "wrong":
        return "comparison"
    if kind == "illegal":
        stages = {"static": "legality", "link": "compile", "timing": "comparison"}
        return stages.get(outcome.get("when", "static"), "forward")
    if kind in ("runtime", "timeout", "oom"):
        stage = outcome.get("stage", "forward")
        return stage if stage in ("record", "compile", "load", "init") else "forward"
    return None


def repair_request(feedback: str) -> str:
    """The user's turn after an answer that failed (reward::repair_request)."""
    return f"{feedback}Write the whole answer again.\n"


def retry_request(code: str, feedback: str) -> str:
    """The text behind a task's prompt in a replay (reward::retry_request)."""
    answer = without_special_tokens(code)
    return f"An answer that failed:\n{answer}\n{repair_request(feedback)}"


# The marks with which a special token of a chat template may begin: angles, brackets (each with its
# full-width form) and the "]~" of MiniMax.
_MARK = re.compile(rb"(<|\xef\xbc\x9c)|(\[|\xef\xbc\xbb)|\](?=~)")
_BAR = (b"|", b"\xef\xbd\x9c")
_IN_ANGLES = re.compile(rb"([^ <\[(),;&*\"'=]{0,99}?)(?:>|\xef\xbc\x9e)")
_IN_BRACKETS = re.compile(rb"([^ <\[(),;&*\"'=]{0,99}?)(?:\]|\xef\xbc\xbd)")
_TOKEN_BYTES_MAX = 110  # A token's marks are counted.
_PLAIN_IN_ANGLES = frozenset(
    b"T __half __nv_bfloat16 algorithm bool char cmath cstdint double float float2 float4 half "
    b"half2 int int32_t int64_t long scalar_t short size_t unsigned uint32_t vector".split()
)
_SPECIAL_IN_BRACKETS = re.compile(rb"\||^/|^control_|[A-Z][A-Z]|[\x80-\xff]")


def without_special_tokens(text: str) -> str:
    """The text with a space in each special token of a chat template
    (reward::without_special_tokens; src/reward/golden/special_tokens.json is a table of both)."""
    data = text.encode("utf-8", "surrogatepass")
    return _MARK.sub(_parted, data).decode("utf-8", "surrogatepass")


def _parted(mark: re.Match[bytes]) -> bytes:
    is_angle, is_bracket = mark[1] is not None, mark[2] is not None
    rest = mark.string[mark.end() : mark.end() + _TOKEN_BYTES_MAX]
    if is_angle:
        begins = rest.startswith((b"]", *_BAR)) or not _is_plain_in_angles(rest)
    elif is_bracket:
        begins = rest.startswith((b">", *_BAR)) or not _is_plain_in_brackets(rest)
    else:
        begins = True
    is_closing = is_bracket and mark.string[max(0, mark.start() - 1) : mark.start()] == b"~"
    return (b" " if is_closing else b"") + mark[0] + (b" " if begins else b"")


def _is_plain_in_angles(rest: bytes) -> bool:
    found = _IN_ANGLES.match(rest)
    word = found[1] if found else b""
    is_number = not word or word.isdigit()
    return is_number or b"." in word or b"::" in word or word in _PLAIN_IN_ANGLES


def _is_plain_in_brackets(rest: bytes) -> bool:
    found = _IN_BRACKETS.match(rest)
    return found is None or _SPECIAL_IN_BRACKETS.search(found[1]) is None


@dataclass(frozen=True)
class Failure:
    """A failed answer, with all that a replay's prompt needs."""

    task: str
    code: str  # The result of code_of.
    feedback: str = ""
    s: float = -1.0  # The score is below PASSED.
    stage: str = "extraction"
    step: int = 0  # The step of the policy that wrote it.
    group: int = 0  # Its group's place in the order of the step.
    prompt: Any = None  # The task's prompt without a replay, as the host keeps it.


def choose_failure(failures: Iterable[Failure]) -> Failure | None:
    """The failure of a group to keep: highest s, then furthest stage, shortest code, least hash.

    The hash differs from src/rl's, so between codes of equal length the choice may differ.
    """

    def rank(failure: Failure) -> tuple[float, int, int, str]:
        stage = STAGES.index(failure.stage)
        key = hashlib.sha256(f"{failure.task}\0{failure.code}".encode("utf-8", "replace"))
        return -failure.s, -stage, len(failure.code), key.hexdigest()

    return min(failures, key=rank, default=None)


def _mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def uniform(seed: int, step: int, slot: int) -> float:
    """A number in [0, 1) that seed, step and slot determine (src/rl/random.h)."""
    return (_mix((_mix((_mix(seed) + step) % 2**64) + slot) % 2**64) >> 11) / 2**53


@dataclass
class _Item:
    failure: Failure
    ready_at: int  # The first step at which the item may be drawn.


class RetryBuffer:
    """A queue of failed answers, one per task, first in, first out (src/rl/bdr.h).

    A prompt slot replays the oldest ready item with `probability`.  An item is not drawn in the
    step that added it, nor twice in a step; it stays until it is solved, replaced by a newer
    failure of its task, or replayed for the `replays_max`th time.  `state` and `restore` are for
    checkpoints.  Not for use from several threads at once.
    """

    def __init__(
        self, capacity: int = 256, probability: float = 0.1, replays_max: int = 2, seed: int = 0
    ) -> None:
        if capacity < 1 or replays_max < 1 or not 0 <= probability <= 1:
            raise ValueError(
                "retry buffer: expected capacity >= 1, replays_max >= 1 and 0 <= probability <= 1, "
                f"got {capacity}, {replays_max}, {probability}"
            )
        self._capacity = capacity
        self._probability = probability
        self._replays_max = replays_max
        self._seed = seed
        # The key is the task, and the dict's order is the queue's.
        self._items: dict[str, _Item] = {}
        self._replays: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    @property
    def failures(self) -> list[Failure]:
        return [item.failure for item in self._items.values()]

    def insert(self, failures: Iterable[Failure]) -> None:
        """Inserts the failures of one step, given in any order, sorted by (step, group)."""
        for failure in sorted(failures, key=lambda f: (f.step, f.group)):
            self._insert(failure)

    def _insert(self, failure: Failure) -> None:
        if failure.s >= PASSED:
            raise ValueError(f"retry buffer: the answer to {failure.task[:80]!r} passed")
        if self._is_exhausted(failure.task):
            return
        old = self._items.get(failure.task)
        if old is None:
            self._items[failure.task] = _Item(failure, failure.step + 1)
            if len(self._items) > self._capacity:
                del self._items[next(iter(self._items))]
        elif (failure.step, failure.group) >= (old.failure.step, old.failure.group):
            # The newer failure keeps the older one's place in the queue.
            self._items[failure.task] = _Item(failure, max(failure.step + 1, old.ready_at))

    def solved(self, task: str) -> None:
        """Removes the item of a task with a passing answer (of a replay or a fresh prompt), and its
        count of replays.
        """
        self._items.pop(task, None)
        self._replays.pop(task, None)

    def draw(self, step: int, slot: int) -> Failure | None:
        """The failure that this prompt slot replays, if any."""
        if uniform(self._seed, step, slot) >= self._probability:
            return None
        item = next((item for item in self._items.values() if item.ready_at <= step), None)
        if item is None:
            return None
        task = item.failure.task
        self._replays[task] = self._replays.get(task, 0) + 1
        item.ready_at = step + 1
        if self._is_exhausted(task):
            del self._items[task]
        return item.failure

    def give_back(self, failure: Failure) -> None:
        """Undoes a draw whose replay was never answered."""
        replays = self._replays.get(failure.task, 0)
        if replays == 0:
            return  # The task was solved since.
        self._replays[failure.task] = replays - 1
        if failure.task not in self._items and len(self._items) < self._capacity:
            # The item was the oldest of the queue when it was drawn.
            self._items = {failure.task: _Item(failure, failure.step + 1), **self._items}

    def remember(
        self, groups: Iterable[Group], step: int, fits: Callable[[Failure], bool] = lambda _: True
    ) -> None:
        """Ends a step: solved tasks leave the buffer, tasks on which all failed enter it.

        `fits` says whether the prompt of a replay has room.
        """
        failures = []
        for number, group in enumerate(groups):
            if group.passed():
                self.solved(group.task)
            elif (failure := group.failure(step, number, fits)) is not None:
                failures.append(failure)
        self.insert(failures)

    def _is_exhausted(self, task: str) -> bool:
        return self._replays.get(task, 0) >= self._replays_max

    def state(self) -> dict[str, Any]:
        """The buffer without its options, as plain values."""
        items = [
            {"ready_at": item.ready_at, **dataclasses.asdict(item.failure)}
            for item in self._items.values()
        ]
        return {"items": items, "replays": dict(self._replays)}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes what state() returned, as far as the capacity goes."""
        self._items = {}
        for entry in state["items"][-self._capacity :]:
            values = {**entry}
            ready_at = int(values.pop("ready_at"))
            failure = Failure(**values)
            self._items[failure.task] = _Item(failure, ready_at)
        self._replays = dict(state["replays"])


@dataclass(frozen=True)
class Turn:
    """One answer of an episode with its verdict's data, as the hosts pass it to BDR."""

    answer: str
    s: Reward
    feedback: str
    stage: str | None  # None for an answer that did not fail.


@dataclass(frozen=True)
class Group:
    """The episodes of one prompt in a step."""

    task: str  # Identifies the task in its dialect.
    prompt: Any  # The prompt as Failure has it.
    episodes: Sequence[Sequence[Turn]]

    def passed(self) -> bool:
        scores = [turn.s for turns in self.episodes for turn in turns if turn.s is not None]
        return max(scores, default=-1.0) >= PASSED

    def failure(
        self, step: int, number: int, fits: Callable[[Failure], bool] = lambda _: True
    ) -> Failure | None:
        """The failure that the group adds to the buffer; None if an answer passed or none fits."""
        if self.passed():
            return None
        failures = (
            Failure(
                self.task, code_of(turn.answer), turn.feedback, turn.s, turn.stage, step, number,
                self.prompt,
            )  # fmt: skip
            for turns in self.episodes
            for turn in turns
            if turn.s is not None and turn.stage is not None
        )
        return choose_failure(filter(fits, failures))
