# SPDX-License-Identifier: Apache-2.0
"""Chooses the sizes at which a task is judged: native or smaller ones, and two variants.

Reduction: while one forward costs more than the backend allows, the largest size is divided by two
(or by four if the cost is far too high), first the sizes that only `get_inputs` reads, then those
of `get_init_inputs`; a size whose change breaks the reference, or saves nothing, stays. If one size
of the model divides another (groups and channels), both are reduced together when their ratio would
become too small: a task with 16 elements per group must not become a variance over two. Variants:
"ragged" reduces sizes to primes, "small" uses 1 and 3 if the reference allows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.judge.cost import Cost, estimate
from harness.judge.task import Site, Task
from harness.judge.task_code import attempt
from harness.worker.wire import Json, Refusal

# Small sizes with such names determine what is computed, not how much.
STRUCTURAL_MAX = 16
_STRUCTURAL = re.compile(
    r"kernel|stride|padding|dilation|pool|head|^dim$|_dim$|axis|factor|patch", re.IGNORECASE
)
_BATCH = re.compile(r"batch|^bs?$", re.IGNORECASE)
_SMALL = (3, 7, 17, 33)
DIVISOR_MIN = 4  # Fewer groups would not show a kernel that confuses them.
RATIO_MIN = 16  # A ratio is not reduced below this.
VARIANT_TRIES = 24  # A count and not a time: the same seed must give the same shapes.


@dataclass(frozen=True)
class Options:
    """The supervisor's options; see docs/correctness.md."""

    trials: int = 5
    inputs: str = "varied"  # Or "native", or "verified" (distributions.SCALED).
    shapes: bool = True
    require_general: bool = False
    specials: bool = True
    mode: str = "train"  # "train": as the constructor leaves the model; or "eval".
    precision: str = "task"  # The names are in precision.py.
    tolerance_fp32: float = 1e-4
    tolerance_half: float = 1e-2
    cost_max: float = 6e7
    bytes_max: int = 8 << 20
    tf32: bool = False  # Factors of fp32 products may be rounded to TF32.

    def excess(self, cost: Cost) -> float:
        """The ratio of a cost to its limit; at most 1 if it fits."""
        return max(
            cost.work / self.cost_max,
            cost.bytes_io / self.bytes_max,
            cost.bytes_tensor_max / (4 * self.bytes_max),
            cost.bytes_state / (4 * self.bytes_max),
        )


NATIVE_EXCESS_MAX = 40.0
EXCESS_MAX = 60.0  # A case that cannot be reduced further is still judged up to this excess.


@dataclass(frozen=True)
class Shape:
    """One binding of the task's sizes."""

    label: str  # "native", "reduced", "ragged", "small"; `other` has more.
    bound: Mapping[str, int]  # The sizes that differ from the text.
    constants: Mapping[str, int]
    cost: Cost | None  # None if the reference cannot run on the meta device.
    reason: str = ""

    def report(self, native: Mapping[str, int]) -> Json:
        reduction = {"native": dict(native), "used": dict(self.constants), "reason": self.reason}
        entry = {"label": self.label, "constants": dict(self.constants)}
        return {**entry, "reduction": reduction} if self.label == "reduced" else entry


class ShapePlanner:
    """Finds the shapes of one task."""

    def __init__(self, task: Task, options: Options, kept: Sequence[int] = ()) -> None:
        self._task = task
        self._options = options
        self._kept = kept
        self._tries_left = VARIANT_TRIES
        self._may_be_empty = False
        self.native = {site.name: site.value for site in task.sites}
        # A size that the Model class itself reads cannot be passed to a candidate.
        self._sites = [
            site
            for site in task.sites
            if site.used_by and "Model" not in site.used_by and not _is_structural(site)
            if site.value not in kept
        ]
        # Names of a size of the model and of a size that divides it, with their ratio.
        of_model = [
            site
            for site in task.sites
            if site.used_by - {"get_inputs"} and not _is_structural(site)
        ]
        self._ratios = [
            (site.name, divisor.name, site.value // divisor.value)
            for site in of_model
            for divisor in of_model
            if site.value > divisor.value > 1 and site.value % divisor.value == 0
        ]

    def main(self) -> Shape:
        """The native shape, or a reduced one. Raises Refusal("unsupported") if none fits."""
        native = attempt(estimate, self._task, {})
        if native is None:
            return self._shape("native", {}, None)
        self._may_be_empty = native.has_empty
        if self._options.excess(native) <= 1:
            return self._shape("native", {}, native)
        bound, cost = self._reduce(native)
        excess = self._options.excess(cost)
        if excess > EXCESS_MAX:
            raise Refusal(
                "unsupported", "the task is too large for the CPU backend: " + _text(cost)
            )
        reason = f"the native shape needs {_text(native)}; reduced to {_text(cost)}"
        return self._shape("reduced" if bound else "native", bound, cost, reason)

    def other(self, label: str, kept: Sequence[int] = ()) -> Shape | None:
        """A shape at which a candidate can show that it failed only because of the device in
        software.

        "native" are the task's own sizes, where one forward may take long; in "named" those of
        `kept` are the task's own; "1/8" are sizes at which a forward costs about an eighth of its
        cost at the main sizes.
        """
        if label in ("native", "named"):
            return self._with_raised_limit(label, kept)
        divisor = int(label.removeprefix("1/"))
        main = self.main()
        if main.cost is None:
            return None
        excess = min(1.0, self._options.excess(main.cost))
        shape = self._within(excess / divisor)
        if shape is None or not shape.bound or shape.cost is None:
            return None
        is_cheaper = self._options.excess(shape.cost) <= self._options.excess(main.cost) / 4
        return replace(shape, label=label) if is_cheaper else None

    def _with_raised_limit(self, label: str, kept: Sequence[int]) -> Shape | None:
        """The task's own or the kept sizes, with a high limit for the time of one forward."""
        if label == "named" and not kept:
            return None
        planner = ShapePlanner(self._task, self._options, kept)
        shape = planner._within(NATIVE_EXCESS_MAX)
        if shape is None or shape.cost is None or (label == "native" and shape.bound):
            return None
        fits = self._options.excess(shape.cost) <= NATIVE_EXCESS_MAX
        return replace(shape, label=label) if fits else None

    def _within(self, excess: float) -> Shape | None:
        """The main shape if the limits were multiplied by `excess`."""
        options = replace(
            self._options,
            cost_max=self._options.cost_max * excess,
            bytes_max=int(self._options.bytes_max * excess),
        )
        return attempt(ShapePlanner(self._task, options, self._kept).main)

    def variants(self, main: Shape) -> Iterator[Shape]:
        """Candidates for "ragged", then for "small"; the caller runs the reference on each."""
        if main.cost is None:
            return
        yield from self._ragged(main)
        yield from self._small(main)

    def _shape(
        self, label: str, bound: Mapping[str, int], cost: Cost | None, reason: str = ""
    ) -> Shape:
        return Shape(label, bound, {**self.native, **bound}, cost, reason)

    # ---- Reduction ------------------------------------------------------------------------------

    def _reduce(self, cost: Cost) -> tuple[dict[str, int], Cost]:
        bound: dict[str, int] = {}
        for uses, floor, batch_floor, keeps_ratios in _PHASES:
            frozen: set[str] = set()
            while self._options.excess(cost) > 1:
                site = self._largest(uses, floor, batch_floor, bound, frozen)
                if site is None:
                    break
                changed = self._try_smaller(site, bound, cost, keeps_ratios)
                if changed is None:
                    frozen.add(site.name)
                else:
                    bound, cost = changed
        return bound, cost

    def _largest(
        self, uses: bool, floor: int, batch_floor: int, bound: Mapping[str, int], frozen: set[str]
    ) -> Site | None:
        def value(site: Site) -> int:
            return bound.get(site.name, site.value)

        eligible = [
            site
            for site in self._sites
            if site.name not in frozen
            and ("get_init_inputs" in site.used_by) == uses
            and value(site) > (batch_floor if _BATCH.search(site.name) else floor)
        ]
        return max(eligible, key=value, default=None)

    def _try_smaller(
        self, site: Site, bound: Mapping[str, int], cost: Cost, keeps_ratios: bool
    ) -> tuple[dict[str, int], Cost] | None:
        """The bindings with this size divided: alone; with the sizes that divide it, if it would
        become too small for them; with all equal sizes, if they belong together.
        """
        value = bound.get(site.name, site.value)
        far = self._options.excess(cost) > 16 and value >= 256
        equal = [s.name for s in self._sites if bound.get(s.name, s.value) == value]
        groups = [[site.name], equal] if len(equal) > 1 else [[site.name]]
        choices = [
            (names, divisor)
            for group in groups
            for divisor in ((4, 2) if far else (2,))
            for names in (group, self._with_divisors(group, divisor, bound))
        ]
        for names, divisor in choices:
            now = {**self.native, **bound}
            smaller = {**bound, **{name: max(1, now[name] // divisor) for name in names}}
            if keeps_ratios and not self._has_ratios(smaller):
                continue
            new_cost = self._cost_at(smaller)
            if new_cost is not None and self._options.excess(new_cost) < self._options.excess(cost):
                return smaller, new_cost
        return None

    def _with_divisors(self, group: list[str], divisor: int, bound: Mapping[str, int]) -> list[str]:
        """The group together with the sizes that divide its own."""
        may_change = {site.name for site in self._sites}
        now = {**self.native, **bound}
        of_group = [
            name
            for large, name, _ in self._ratios
            if large in group and name in may_change and now[name] >= DIVISOR_MIN * divisor
        ]
        return list(dict.fromkeys([*group, *of_group]))

    def _has_ratios(self, bound: Mapping[str, int]) -> bool:
        now = {**self.native, **bound}
        return all(
            now[large] >= min(ratio, RATIO_MIN) * now[small] for large, small, ratio in self._ratios
        )

    def _cost_at(self, bound: Mapping[str, int]) -> Cost | None:
        """The cost at these sizes; None if the reference does not accept them."""
        cost = attempt(estimate, self._task, bound)
        # A kernel larger than its input gives nothing on the meta device and fails elsewhere.
        return None if cost is None or cost.has_empty and not self._may_be_empty else cost

    def _try(self, bound: Mapping[str, int]) -> Cost | None:
        self._tries_left -= 1
        return self._cost_at(bound) if self._tries_left >= 0 else None

    # ---- Variants -------------------------------------------------------------------------------

    def _ragged(self, main: Shape) -> Iterator[Shape]:
        wanted = {
            site.name: prime_below(main.constants[site.name])
            for site in self._sites
            if main.constants[site.name] >= 5
        }
        yield from self._first("ragged", main, [wanted, *self._one_by_one(main, wanted)])

    def _one_by_one(self, main: Shape, wanted: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
        """All changes with which the reference still runs, found one after the other."""
        kept: dict[str, int] = {}
        for name, value in wanted.items():
            if self._try({**main.bound, **kept, name: value}) is not None:
                kept[name] = value
        yield kept

    def _small(self, main: Shape) -> Iterator[Shape]:
        only_inputs = [site for site in self._sites if "get_init_inputs" not in site.used_by]
        choices = [
            {
                site.name: 1 if _BATCH.search(site.name) else min(size, main.constants[site.name])
                for site in only_inputs
            }
            for size in _SMALL
        ]
        yield from self._first("small", main, choices)

    def _first(
        self, label: str, main: Shape, choices: Iterable[Mapping[str, int]]
    ) -> Iterator[Shape]:
        for choice in choices:
            bound = {**main.bound, **choice}
            cost = self._try(bound)
            if cost is None or main.cost is None or cost.shapes == main.cost.shapes:
                continue
            if self._options.excess(cost) <= max(1.0, self._options.excess(main.cost)):
                yield self._shape(label, bound, cost)


# Each phase has three fields: whether get_init_inputs reads the size, the value (of a batch size)
# below which it is kept, and whether ratios are kept. Batches stay at 16 while other sizes can be
# reduced: statistics over two or three rows are so ill-conditioned that a right sum in another
# order fails.
_PHASES = (
    (False, 16, 16, True),
    (True, 32, 16, True),
    (False, 4, 1, True),
    (True, 4, 1, True),
    (False, 1, 1, True),
    (True, 4, 1, False),
)


def _is_structural(site: Site) -> bool:
    return site.value <= STRUCTURAL_MAX and _STRUCTURAL.search(site.name) is not None


def prime_below(value: int) -> int:
    """The largest prime below `value`. REQUIRES: value > 2."""
    number = value - 1
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number


def _text(cost: Cost) -> str:
    size = cost.bytes_io + cost.bytes_state
    return f"{cost.work:.2g} operations and {size / 2**20:.0f} MiB"
