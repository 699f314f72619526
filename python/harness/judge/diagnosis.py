# SPDX-License-Identifier: Apache-2.0
"""Explains a wrong output: finds the operator of the reference that the candidate computes
differently.

The reference runs again on the trial's inputs, each time with one thing changed (perturbations.py:
an operator left out, replaced or given other arguments; a parameter left out; the other mode; two
neighbours exchanged; another constant, which is fitted), and its outputs are compared with the
candidate's under the trial's own tolerance. The first change that reproduces them is reported. If
there is none, patterns.py describes which elements are wrong.

Only reference code runs, and the candidate's outputs are data. All runs are in a forked process of
the judge (forked.py), on the CPU: changed operators do not check their arguments and may crash. No
outcome depends on the diagnosis. The number of runs depends only on the reference's size, so a
verdict is reproducible.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from harness.judge import patterns
from harness.judge.forked import text_from_fork
from harness.judge.compare import Comparer
from harness.judge.cost import bytes_of
from harness.judge.distributions import NONFINITE
from harness.judge.perturbations import Perturbation, line_perturbations, perturbations_of
from harness.judge.reference import Outcome, Reference
from harness.judge.trace import Call, Changed, Recorder, Step, Trace
from harness.worker.region import CPU, map_tensors, state_of, tensors_of
from harness.worker.wire import Json

US_MAX = 800_000.0  # The estimated time of all runs.
RUNS_MIN, RUNS_MAX = 6, 1500
BYTES_MAX = 128 << 20  # Inputs, state and outputs together.
FEW_ELEMENTS = 8  # A smaller output could match by chance.
FIT_STEPS = 6
SAMPLE = 1024
_US_A_CALL, _US_A_RUN, _ELEMENTS_A_US = 12.0, 150.0, 300.0
_FITTED = frozenset(
    "other alpha value min max min_val max_val negative_slope beta threshold exponent lambd "
    "delta scale self eps".split()
)
_Run = Callable[[], Any]


_TF32 = (
    "The outputs are right where products may round their factors to TF32, as tl.dot does by "
    'default: input_precision="ieee" keeps float32 (the option --tf32 allows TF32).'
)


class _OutOfRuns(Exception):
    """The number of runs is used up."""


@dataclass(frozen=True)
class _Change:
    """A change that a candidate may have made, and its description."""

    sentence: str
    run: _Run


def diagnose(
    reference: Reference, outcome: Outcome, got: Any, seed: int, comparer: Comparer, source: str
) -> str:
    """One or two sentences about wrong values; "" if there is no explanation.

    `got` has the form of the outcome's outputs, with wrong values; `seed` is that of the run.
    """
    plain = patterns.of_degenerate(outcome.outputs, got)
    if plain:
        return plain
    if _is_right_in_tf32(reference, outcome, got, seed, comparer):
        return _TF32
    search = _Search(reference, outcome, got, seed, comparer, source)
    # A perturbed reference may raise anything: there is then no diagnosis.
    with contextlib.suppress(_OutOfRuns, Exception):
        found = search.first()
        if found:
            return found
    return patterns.of_elements(outcome, got, comparer)


def _is_right_in_tf32(
    reference: Reference, outcome: Outcome, got: Any, seed: int, comparer: Comparer
) -> bool:
    """True if the only error is that fp32 products rounded their factors to TF32."""
    with contextlib.suppress(Exception):
        error_bound = reference.tf32_error_bound(outcome.inputs, outcome.outputs, seed)
        return error_bound is not None and not comparer.failures(outcome.outputs, got, error_bound)
    return False


@dataclass
class _Search:
    reference: Reference
    outcome: Outcome
    got: Any
    seed: int
    comparer: Comparer
    source: str

    def __post_init__(self) -> None:
        tensors = tensors_of(self.got)
        self._num_elements = sum(one.numel() for one in tensors)
        self._samples = [_sample(one) for one in tensors]
        self._is_single = isinstance(self.got, torch.Tensor)
        if self._num_elements < FEW_ELEMENTS:
            self.comparer = Comparer({k: v / 10 for k, v in self.comparer.tolerances.items()})
        self._wrong = {
            number: other
            for number, (one, other) in enumerate(zip(tensors_of(self.outcome.outputs), tensors))
            if self.comparer.failures(one, other, None)
        }
        self._equal: dict[int, Step] = {}  # The last step that each wrong output copies.
        self._trace = Trace()
        self._runs_left = RUNS_MIN

    def first(self) -> str:
        """The sentence of the first change that explains the output."""
        self._trace = self._record()
        copied = self._copied_input()
        if copied or self._equal:
            return copied or self._intermediate(*next(iter(self._equal.items())))
        for change in self._changes():
            if self._explains(change.run):
                return change.sentence
        return self._fitted()

    def _record(self) -> Trace:
        recorder = Recorder(self.source, self._note_copies)
        self._run(recorder)
        trace = recorder.trace
        cost = _US_A_RUN + _US_A_CALL * trace.num_calls + trace.num_elements / _ELEMENTS_A_US
        self._runs_left = max(RUNS_MIN, min(RUNS_MAX, int(US_MAX / cost)))
        return trace

    def _note_copies(self, step: Step, made: torch.Tensor) -> None:
        for number, one in self._wrong.items():
            if self._is_copy(made, one):
                self._equal[number] = step

    def _is_copy(self, tensor: torch.Tensor, wrong: torch.Tensor) -> bool:
        """True if a wrong output has a tensor's values."""
        if tensor.shape != wrong.shape or tensor.dtype != wrong.dtype:
            return False
        enough = tensor.numel() >= FEW_ELEMENTS and _may_be_equal(tensor, _sample(wrong))
        return enough and not self.comparer.failures(tensor, wrong, None)

    def _copied_input(self) -> str:
        for number, one in self._wrong.items():
            for place, tensor in enumerate(tensors_of(self.outcome.inputs)):
                if self._is_copy(tensor, one):
                    return f"{self._name(number)} equals input {place}, unchanged."
        return ""

    def _run(self, mode: Any, model: torch.nn.Module | None = None, inputs: Any = None) -> Any:
        if model is None:
            model = self.reference.model
            if self.outcome.buffers:
                model = copy.deepcopy(model)
        inputs = self.outcome.inputs if inputs is None else inputs
        with sdpa_kernel(SDPBackend.MATH):
            return self.reference.run_by(model, inputs, self.seed, mode)

    # ---- Comparing

    def _explains(self, run: _Run) -> bool:
        outputs = self._outputs_of(run)
        return outputs is not None and self._is_equal(outputs)

    def _outputs_of(self, run: _Run) -> Any:
        """The outputs; None if the changed reference does not run."""
        if self._runs_left <= 0:
            raise _OutOfRuns
        self._runs_left -= 1
        try:
            return run()
        except Exception:
            return None

    def _is_equal(self, outputs: Any) -> bool:
        mine = tensors_of(outputs)
        if [one.shape for one in mine] != [one.shape for one in tensors_of(self.got)]:
            return False
        if not all(_may_be_equal(one, sample) for one, sample in zip(mine, self._samples)):
            return False
        return not self.comparer.failures(outputs, self.got, self.outcome.error_bound)

    # ---- Changes, the likeliest first

    def _changes(self) -> Iterator[_Change]:
        yield from self._model_changes()
        for step, one in perturbations_of(self._trace.steps):
            yield self._at(step, one)
        yield from self._lines()
        yield from self._neighbours()

    def _at(self, step: Step, one: Perturbation) -> _Change:
        return _Change(
            self._sentence(step, one.words), lambda: self._run(Changed({step.index: one.change}))
        )

    def _model_changes(self) -> Iterator[_Change]:
        model = self.reference.model
        if any(True for _ in model.buffers()):
            other = copy.deepcopy(model).train(not model.training)
            mode = "eval" if model.training else "train"
            words = f"{self._subject} the reference in {mode} mode."
            yield _Change(words, lambda: self._run(contextlib.nullcontext(), other))
        for name, tensor in state_of(model).items():
            value = _neutral(name, tensor)
            if value is not None:
                words = f"{self._subject} the reference without {name} ({value:g} in its place)."
                yield _Change(words, partial(self._without, name, value))

    def _without(self, name: str, value: float) -> Any:
        other = copy.deepcopy(self.reference.model)
        state_of(other)[name].fill_(value)
        return self._run(contextlib.nullcontext(), other)

    def _lines(self) -> Iterator[_Change]:
        """Changes that omit or replace all steps of one line of the task, if it has several."""
        for line, group in itertools.groupby(self._trace.steps, lambda step: step.line):
            first, *others = group
            if not line or not others or others[-1].result is None:
                continue
            name, shape = next(iter(first.shapes.items()))
            for words, function in line_perturbations(shape, others[-1].result):
                sentence = f'{self._subject} the reference with the line "{line}" {words}.'
                yield _Change(sentence, self._rewritten(first, others[-1], name, function))

    def _rewritten(
        self, first: Step, last: Step, name: str, function: Callable[[torch.Tensor], torch.Tensor]
    ) -> _Run:
        def run() -> Any:
            kept: list[torch.Tensor] = []

            def keep(call: Call) -> Any:
                kept.append(call.arguments[name].clone())
                return call.run()

            changes = {first.index: keep, last.index: lambda call: function(kept[0])}
            return self._run(Changed(changes))

        return run

    def _neighbours(self) -> Iterator[_Change]:
        """A change that exchanges a step with the next one."""
        for one, after in itertools.pairwise(self._trace.steps):
            name = next((n for n, shape in one.shapes.items() if shape == one.result), None)
            then = next((n for n, shape in after.shapes.items() if shape == after.result), None)
            if name is not None and then is not None:
                words = f"computed after step {after.number} ({after.name})"
                yield _Change(self._sentence(one, words), self._exchanged(one, after, name, then))

    def _exchanged(self, one: Step, after: Step, name: str, then: str) -> _Run:
        def run() -> Any:
            kept: list[Call] = []

            def skip(call: Call) -> Any:
                kept.append(call)
                return call.arguments[name]

            def both(call: Call) -> Any:
                return kept[0].run(**{name: call.run()})

            return self._run(Changed({one.index: skip, after.index: both}))

        return run

    # ---- A constant of an operator

    def _fitted(self) -> str:
        if self._num_elements < FEW_ELEMENTS or not _are_floating(self.got):
            return ""
        for step in self._trace.steps:
            for name, now in step.constants.items():
                if name in _FITTED and type(now) in (int, float) and math.isfinite(now):
                    found = self._fit(step, name, float(now))
                    if found is not None:
                        return self._sentence(step, f"with {found:.4g} in place of {now:g}")
        return ""

    def _fit(self, step: Step, name: str, now: float) -> float | None:
        """The constant under which the outputs are equal, by the secant of one element."""
        which, place = _worst(self.outcome.outputs, self.got)
        wanted = float(tensors_of(self.got)[which].reshape(-1)[place])

        def outputs_at(value: float) -> Any:
            change = lambda call: call.run(**{name: value})  # noqa: E731
            return self._outputs_of(lambda: self._run(Changed({step.index: change})))

        before, value = now, now + 0.125 * max(1.0, abs(now))
        expected = tensors_of(self.outcome.outputs)[which].reshape(-1)[place]
        error_before = float(expected) - wanted
        for _ in range(FIT_STEPS):
            outputs = outputs_at(value)
            if outputs is None:
                return None
            if self._is_equal(outputs):
                return value
            error = float(tensors_of(outputs)[which].reshape(-1)[place]) - wanted
            slope = (error - error_before) / (value - before) if value != before else 0.0
            if not math.isfinite(slope) or slope == 0.0:
                return None
            before, error_before, value = value, error, value - error / slope
            if not math.isfinite(value) or abs(value) > 1e6:
                return None
        return None

    # ---- Words

    @property
    def _subject(self) -> str:
        return "The output equals" if self._is_single else "The outputs equal"

    def _where(self, step: Step) -> str:
        called = f'{step.name}, "{step.line}"' if step.line else step.name
        return f"step {step.number} of {len(self._trace.steps)} ({called})"

    def _sentence(self, step: Step, words: str) -> str:
        return f"{self._subject} the reference with {self._where(step)} {words}."

    def _name(self, number: int) -> str:
        return "The output" if self._is_single else f"Output {number}"

    def _intermediate(self, number: int, step: Step) -> str:
        missing = len(self._trace.steps) - step.number
        after = "the step after it is" if missing == 1 else f"the {missing} steps after it are"
        found = f"{self._name(number)} equals the value after {self._where(step)}"
        return f"{found}: {after} missing." if self._is_single else found


def _neutral(name: str, tensor: torch.Tensor) -> float | None:
    """The neutral value, which has the effect of a missing parameter or buffer; None if there is
    none.
    """
    last = name.split(".")[-1]
    if not tensor.is_floating_point():
        return None
    if last.endswith(("bias", "running_mean", "beta")) or last.startswith("b"):
        return 0.0
    if last in ("running_var", "gamma") or (last.startswith("weight") and tensor.dim() <= 1):
        return 1.0
    return None


def _are_floating(value: Any) -> bool:
    return all(one.is_floating_point() for one in tensors_of(value))


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.reshape(-1)
    return flat[:: max(1, flat.numel() // SAMPLE)].double() if not tensor.is_complex() else flat[:0]


def _may_be_equal(tensor: torch.Tensor, sample: torch.Tensor) -> bool:
    """A quick look at some elements, more tolerant than the comparison."""
    mine = _sample(tensor)
    if mine.shape != sample.shape:
        return False
    finite = mine.isfinite() & sample.isfinite()
    if bool((mine.isnan() != sample.isnan()).any()):
        return False
    apart = torch.where(finite, (mine - sample).abs(), 0.0)
    scale = torch.where(finite, mine, 0.0).abs()
    size = scale.square().mean().sqrt() if scale.numel() else scale
    return bool((apart <= 0.05 * torch.maximum(scale, size)).all())


def _worst(expected: Any, got: Any) -> tuple[int, int]:
    """The tensor, and the place in it, of the largest finite error."""
    best = (0, 0, -1.0)
    for number, (one, other) in enumerate(zip(tensors_of(expected), tensors_of(got))):
        error = (one.double() - other.double()).abs().nan_to_num(0.0, 0.0, 0.0).reshape(-1)
        if error.numel():
            place = int(error.argmax())
            if float(error[place]) > best[2]:
                best = (number, place, float(error[place]))
    return best[0], best[1]


class Diagnoses:
    """The diagnoses of a task's candidates, in sequence. Each candidate gets one, for the first
    trial that fails by its values, and another attempt if that explains nothing.
    """

    TRIES = 2

    def __init__(self, comparer: Comparer, source: str) -> None:
        self.comparer = comparer
        self.source = source
        self._tries_left = self.TRIES

    def added(
        self,
        checks: list[Json],
        trial: Any,
        make_reference: Callable[[], Reference],
        outcome: Outcome,
        got: Any,
    ) -> list[Json]:
        """The checks of a trial's outputs; the first has a diagnosis if all failures are in values.

        A candidate's first trial has the index 0.
        """
        if trial.index == 0:
            self._tries_left = self.TRIES
        of_values = checks and all(one["problem"] in ("value", "nonfinite") for one in checks)
        if not of_values or self._tries_left <= 0 or trial.distribution == NONFINITE:
            return checks
        self._tries_left -= 1
        found = self._from_fork(make_reference, outcome, got, trial.seed)
        if not found:
            return checks
        self._tries_left = 0
        return [{**checks[0], "diagnosis": found}, *checks[1:]]

    def _from_fork(
        self, make_reference: Callable[[], Reference], outcome: Outcome, got: Any, seed: int
    ) -> str:
        """A diagnosis from a forked process on the CPU; "" for outputs that are too large."""
        # The preparation may fail, for example on a full device, which is not the candidate's
        # fault.
        with contextlib.suppress(Exception):
            reference = make_reference()
            state = state_of(reference.model).values()
            held = [*tensors_of(outcome.inputs), *state, *tensors_of(outcome.outputs)]
            if sum(map(bytes_of, [*held, *tensors_of(got)])) > BYTES_MAX:
                return ""
            if any(one.device != CPU for one in [*held, *tensors_of(got)]):
                reference, outcome = reference.on_cpu(), outcome.on_cpu()
                got = map_tensors(got, torch.Tensor.cpu)
            return text_from_fork(
                lambda: diagnose(reference, outcome, got, seed, self.comparer, self.source)
            )
        return ""
