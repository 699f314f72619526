# SPDX-License-Identifier: Apache-2.0
"""The judge: makes the reference, the secret inputs and the expected outputs, and compares.

It never sees the candidate's code. A candidate process's results reach it as a region and a tree,
of which it takes private copies under limits. `docs/correctness.md` defines correctness.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch

from harness.judge import distributions, hygiene, specials
from harness.timing import device_speed
from harness.worker import region
from harness.judge.closeness import is_ill_conditioned
from harness.judge.compare import TOLERANCES, Comparer
from harness.judge.diagnosis import Diagnoses
from harness.judge.operators import Operators, casts_to
from harness.timing.fresh_inputs import FreshInputs
from harness.timing.timed_calls import TimedCalls
from harness.worker.place import HOST_PLACE, Place
from harness.judge.reference import (
    ORDERS,
    ErrorBounds,
    Outcome,
    Reference,
    buffer_failures,
    derive_seed,
    failures,
    is_finite,
    overwritten_inputs,
)
from harness.judge.rounding import is_inexact
from harness.judge.shapes import Options, Shape, ShapePlanner
from harness.judge.task import Task
from harness.judge.task_code import attempt
from harness.worker.wire import Answer, Json, Question, Refusal

OUTPUT_SLACK_BYTES = 1 << 20
KEPT_BYTES_MAX = 1 << 30  # Inputs of larger calls are drawn again if needed.
_OTHER_GENERATORS = ("numpy", "import random", "from random")  # No seed reaches these.
_RANDOM_WORDS = ("dropout", "rand", "bernoulli", "multinomial", "normal_", "uniform_")
_AT_MAIN_SHAPE = ("signed", "large", "negative")
_LARGER = ("1/64", "1/8")  # Added after a smaller shape (src/eval/limitation.cc).
_INSTEAD = ("signed", "signed_large", "signed_heavy_tail")
_ONE_OF = ("heavy_tail", "integers", "sparse")
WEIGHTS_TRIES = 4
# A counter of a norm layer, on which no output depends.
_COUNTER = "num_batches_tracked"
_MISSING_BUFFER = "the reference's forward changes this buffer, and the candidate has none so named"
# The seed of everything that a task's candidates share; judged inputs and weights use other seeds.
_PLANNING_SEED = 0


@dataclass(frozen=True)
class _Trial:
    """One line of the plan."""

    index: int
    shape: int
    distribution: str
    seed: int


@dataclass(frozen=True)
class _Given:
    """The data for a trial's check; owns its copy of the region's descriptor."""

    outcome: Outcome
    trees: list[Json]
    descriptor: int


@dataclass(frozen=True)
class _Native:
    """Facts about the task's own values at the main shape."""

    is_exact: bool  # Some outputs are integers or booleans.
    has_indices: bool  # Some outputs are integers.
    is_finite: bool
    can_change: bool  # A distribution changes some of its values.
    has_idle_biases: bool  # The outputs are also right without biases.
    # PyTorch's copies could do the forward's work, and its outputs are in their own memory.
    only_moves: bool
    casts: list[str]  # Casts that a candidate may leave to PyTorch.


@dataclass
class _Case:
    """An opened task; members below the line belong to one candidate."""

    place: Place
    task: Task
    comparer: Comparer
    diagnoses: Diagnoses
    options: Options
    sizes: dict[str, int]  # The sizes in the task's text.
    is_random: bool
    draws_again: bool  # The same seed gives the same inputs.
    is_in_eval_mode: bool = False
    # Bytes at the main shape: of inputs, outputs, parameters and buffers, and of a forward's
    # workspace.
    call_memory: dict[str, int] = field(default_factory=dict)
    shapes: list[Shape] = field(default_factory=list)
    num_planned: int = 0  # The planned shapes come first, then a candidate's additional ones.
    native: _Native | None = None  # Findings of the first forward at the main shape.
    usable: dict[str, bool] = field(default_factory=dict)  # Distributions there, once tested.
    special: str | None = None  # The distribution of the trial with NaN or infinities, if any.
    has_looked_for_special: bool = False
    # Trivial answers that pass under distributions that the reference can take.
    passing: dict[str, frozenset[str]] = field(default_factory=dict)
    previous: Any = None  # Sampled outputs for other inputs, once they are needed.
    grade: hygiene.Grade = field(default_factory=lambda: hygiene.Grade("good"))

    seed: int = _PLANNING_SEED
    trials: list[_Trial] = field(default_factory=list)
    references: dict[int, Reference] = field(default_factory=dict)
    given: dict[int, _Given] = field(default_factory=dict)
    timing: FreshInputs | None = None


class Judge:
    """Responds to `estimate` and `open` for each task; then for each candidate to `begin`, any
    number of `init`, `trial`, `check`, `offer` and timing requests, and `rest`.
    """

    def __init__(self, place: Place = HOST_PLACE, executor_library: str = "") -> None:
        self._place = place
        self._opened: _Case | None = None
        self._timed = TimedCalls(executor_library, place)

    def answer(self, question: Question) -> Answer:
        with torch.no_grad():
            if question.body["op"] == "estimate":
                return _estimate(question.body)
            if question.body["op"] == "open":
                self._opened = None  # The case may be of another task.
                torch.set_default_dtype(torch.float32)
                self._place.trim()
                self._opened = _open(self._place, question.body)
                self._place.trim()  # Its candidate may still have to be compiled.
                return Answer()
            operations = {
                "begin": _begin,
                "init": _init,
                "trial": _trial,
                "check": _check,
                "offer": _offer,
                "grade": _grade,
                "rest": _rest,
            }
            if self._opened is None:
                raise Refusal("protocol", "a judge answers open, then begin, then all else")
            operation = operations.get(question.body["op"], partial(_time, self._timed))
            return operation(self._opened, question)


# ---- Planning -----------------------------------------------------------------------------------


def _estimate(body: Json) -> Answer:
    """The memory of a call at the main shape, found on the meta device, before the judge may use
    its own device.
    """
    shape = attempt(ShapePlanner(Task(body["source"]), Options(**body["options"])).main)
    cost = None if shape is None else shape.cost
    io, state = (0, 0) if cost is None else (cost.bytes_io, cost.bytes_state)
    memory = {"inputs": int(io), "outputs": 0, "state": int(state), "work": 0}
    return Answer({"call_memory": memory})


def _open(place: Place, body: Json) -> _Case:
    options = Options(**body["options"])
    source = body["source"]
    task = Task(source)
    planner = ShapePlanner(task, options)
    tolerances = {
        **TOLERANCES,
        "float32": options.tolerance_fp32,
        "float16": options.tolerance_half,
        "bfloat16": options.tolerance_half,
    }
    is_random = any(word in source.lower().split("def get_inputs")[0] for word in _RANDOM_WORDS)
    comparer = Comparer(tolerances)
    diagnoses = Diagnoses(comparer, source)
    draws_again = not any(word in source for word in _OTHER_GENERATORS)
    case = _Case(place, task, comparer, diagnoses, options, planner.native, is_random, draws_again)
    case.is_in_eval_mode = options.mode == "eval"
    if not body.get("known") or not _recall(case, body["known"]):
        case.shapes.append(planner.main())
        _inspect_native(case)
        if options.shapes:
            _add_variants(case, planner)
    case.references.clear()  # Their weights are not the candidate's.
    case.num_planned = len(case.shapes)
    return case


def _begin(case: _Case, question: Question) -> Answer:
    """Begins a candidate: its seed, which determines its weights and inputs, and its plan."""
    _rest(case, question)
    del case.shapes[case.num_planned :]
    case.seed = _PLANNING_SEED
    chosen = _choose_distributions(case, question.body["seed"])
    _find_grade(case)
    if _special_of(case) is not None:
        chosen.append(str(case.special))
    case.references.clear()
    case.place.trim()
    case.seed = question.body["seed"]
    planned = [(0, name) for name in chosen]
    planned += [(shape, distributions.NATIVE) for shape in range(1, len(case.shapes))]
    case.trials = [
        _Trial(index, shape, name, derive_seed(case.seed, "trial", index))
        for index, (shape, name) in enumerate(planned)
    ]
    return Answer({"plan": _plan_report(case), "known": json.dumps(_known(case))})


def _known(case: _Case) -> Json:
    """The facts about the task that do not depend on a candidate: a judge that receives them need
    not find them again.
    """
    assert case.native is not None
    planned = case.shapes[: case.num_planned]
    return {
        "is_in_eval_mode": case.is_in_eval_mode,
        "call_memory": case.call_memory,
        "shapes": [[one.label, one.bound, one.constants, one.reason] for one in planned],
        "native": asdict(case.native),
        "usable": case.usable,
        "passing": {name: sorted(answers) for name, answers in case.passing.items()},
        "special": case.special,
        "has_looked_for_special": case.has_looked_for_special,
    }


def _recall(case: _Case, text: str) -> bool:
    """Reads the facts that another judge found; False if the text is malformed."""
    try:
        known = json.loads(text)
        found = {
            "is_in_eval_mode": known["is_in_eval_mode"],
            "call_memory": known["call_memory"],
            "shapes": [
                Shape(label, bound, constants, None, reason)
                for label, bound, constants, reason in known["shapes"]
            ],
            "native": _Native(**known["native"]),
            "usable": known["usable"],
            "passing": {name: frozenset(answers) for name, answers in known["passing"].items()},
            "special": known["special"],
            "has_looked_for_special": known["has_looked_for_special"],
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    vars(case).update(found)
    return True


def _choose_distributions(case: _Case, seed: int) -> list[str]:
    """The distributions of the main shape's trials: the native one, and others that suit the
    reference.

    Where a trivial answer (zeros, a constant, a copy of an input) would pass under a distribution,
    another one takes its place, if there is one under which it fails.
    """
    num = case.options.trials
    if case.options.inputs != "varied":
        return [name for name, _ in zip(itertools.cycle(_names_of(case)), range(num))]
    others = [*_AT_MAIN_SHAPE, _ONE_OF[derive_seed(seed, "distribution") % len(_ONE_OF)]]
    num_native = max(1, num - len(others))
    chosen: list[str] = []
    for name in [distributions.NATIVE] * num_native + others[: num - num_native]:
        drawn = [name, *_INSTEAD] if name != distributions.NATIVE else _INSTEAD
        alternatives = [
            other for plain in drawn for other in (plain, plain + distributions.WITHOUT_ZEROS)
        ]
        if name == distributions.NATIVE:
            alternatives.insert(0, name)
        alternatives.append(distributions.NATIVE)
        taken = {other.removesuffix(distributions.WITHOUT_ZEROS) for other in chosen}
        alternatives.sort(
            key=lambda other: other != name
            and other.removesuffix(distributions.WITHOUT_ZEROS) in taken
        )
        usable = (other for other in alternatives if _is_usable(case, other))
        chosen.append(next(usable, distributions.NATIVE))
    return chosen


def distributions_of_candidates(case: _Case) -> list[str]:
    """The distributions, besides the native one, of some candidates' trials at the main shape."""
    assert case.native is not None
    chosen = {trial.distribution for trial in case.trials if trial.shape == 0}
    if case.native.can_change:
        chosen |= {name for name in _ONE_OF if case.usable.get(name, True)}
    return sorted(chosen - {distributions.NATIVE, distributions.ONLY_NAN, distributions.NONFINITE})


def _names_of(case: _Case) -> list[str]:
    """The distributions at the main shape that belong to every candidate of the task."""
    if case.options.inputs == "native":
        return [distributions.NATIVE]
    if case.options.inputs == "verified":
        return [distributions.NATIVE, *distributions.SCALED]
    return [distributions.NATIVE, *_AT_MAIN_SHAPE][: case.options.trials]


def _find_grade(case: _Case) -> None:
    """Grades the task under the distributions that its candidates have in common, and under those
    that may take their places while one trivial answer passes all of them.
    """
    assert case.native is not None
    names = _names_of(case)
    if case.options.inputs == "varied":
        names += [name for name in _INSTEAD if name not in names]
    found: dict[str, frozenset[str]] = {}
    for name in names:
        if found and not frozenset.intersection(*found.values()):
            break
        _is_usable(case, name)
        if name in case.passing:
            found[name] = case.passing[name]
    case.grade = hygiene.grade(found, distributions.NATIVE, case.native.has_idle_biases)


def _inspect_native(case: _Case) -> None:
    outcome = _first_outcome(case, 0)
    for value, source in ((outcome.inputs, "get_inputs"), (outcome.outputs, "forward")):
        with region.must_pass(f"what {source} returns"):
            region.form_of(value)
    outputs = region.tensors_of(outcome.outputs)
    reference = _reference(case, 0)
    sizes = {
        "inputs": _bytes_of(region.tensors_of(outcome.inputs)),
        "outputs": _bytes_of(outputs),
        "state": _bytes_of(region.state_of(reference.model).values()),
    }
    # A run also needs a copy of the inputs, and its outputs.
    peak = case.place.peak_of(partial(reference.run, outcome.inputs, 0))
    work = max(0, peak - sizes["inputs"] - sizes["outputs"])
    case.call_memory = {**sizes, "work": work}
    operators = Operators()
    reference.run_by(reference.model, outcome.inputs, 0, operators)
    inputs, state = region.tensors_of(outcome.inputs), region.state_of(reference.model)
    casts = casts_to([*inputs, *outputs, *state.values()])
    case.native = _Native(
        is_exact=not all(map(is_inexact, outputs)),
        has_indices=not all(is_inexact(one) or one.dtype == torch.bool for one in outputs),
        is_finite=is_finite(outcome.outputs),
        can_change=distributions.can_change(outcome.inputs),
        has_idle_biases=hygiene.ignores_biases(case.comparer, reference, outcome, 0),
        only_moves=operators.only_move and not outcome.has_views,
        casts=[call for call in operators.calls if call.startswith("cast ")] + casts,
    )
    case.usable[distributions.NATIVE] = _discriminates(case, distributions.NATIVE, outcome)


def _first_outcome(case: _Case, shape: int) -> Outcome:
    """The first forward at a shape; settles the mode of a reference that is random in training."""
    reference = _reference(case, shape)
    inputs = reference.draw_inputs(derive_seed(case.seed, "trial", 0), distributions.NATIVE)
    if case.is_random and not reference.settle_mode(inputs, case.comparer):
        raise Refusal("unsupported", "the reference gives random results; they cannot be compared")
    case.is_in_eval_mode = not reference.model.training
    return reference.run(inputs, 0)


def _is_usable(case: _Case, name: str) -> bool:
    """True if the reference's results under a distribution are finite, well-conditioned and
    informative.

    This is found for the first candidate that may get it, under the planning seed.
    """
    if name not in case.usable:
        case.usable[name] = _find_usable(case, name)
    return case.usable[name]


def _find_usable(case: _Case, name: str) -> bool:
    assert case.native is not None and case.seed == _PLANNING_SEED
    plain = name.removesuffix(distributions.WITHOUT_ZEROS)
    if plain in distributions.WITH_TIES and case.native.is_exact:
        return False
    if plain == name and case.native.has_indices:
        return False
    if not case.native.can_change:
        return False
    inputs = _reference(case, 0).draw_inputs(derive_seed(case.seed, "trial", 0), name)
    outcome = sensible_outcome(case, inputs)
    return outcome is not None and _discriminates(case, name, outcome)


def sensible_outcome(case: _Case, inputs: Any) -> Outcome | None:
    """The reference's outcome for values other than the native ones; None if they are outside its
    domain, or its results are ill-conditioned.
    """
    assert case.native is not None
    outcome = attempt(_reference(case, 0).run, inputs, 0)
    if outcome is None:
        return None
    if case.native.is_finite and not is_finite(outcome.outputs):
        return None
    bounds = region.tensors_of(outcome.error_bound)
    if any(map(is_ill_conditioned, region.tensors_of(outcome.outputs), bounds)):
        return None
    return outcome


def _special_of(case: _Case) -> str | None:
    """The distribution of the trial with NaN or infinities (specials.py); found once for a task."""
    assert case.native is not None
    if not case.has_looked_for_special and case.seed == _PLANNING_SEED:
        case.has_looked_for_special = True
        is_wanted = case.options.inputs == "varied" and case.options.specials
        may = is_wanted and case.native.can_change
        if may and case.native.is_finite and not case.native.is_exact:
            case.special = specials.distribution_for(_reference(case, 0))
    return case.special


def _bytes_of(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def _discriminates(case: _Case, name: str, outcome: Outcome) -> bool:
    """True if all trivial answers are wrong under a distribution; the result is kept."""
    if case.previous is None:
        reference = _reference(case, 0)
        inputs = reference.draw_inputs(derive_seed(case.seed, "previous"), distributions.NATIVE)
        case.previous = hygiene.answered(reference.run(inputs, 0))
    case.passing[name] = hygiene.passing(case.comparer, outcome, case.previous)
    return not case.passing[name]


def _add_variants(case: _Case, planner: ShapePlanner) -> None:
    """Adds the shape variants under which the reference runs and stays finite."""
    for shape in planner.variants(case.shapes[0]):
        number = len(case.shapes)
        if any(shape.label == known.label for known in case.shapes):
            continue
        case.shapes.append(shape)
        outcome = attempt(_first_outcome, case, number)
        case.references.pop(number, None)
        if outcome is None or not is_finite(outcome.outputs):
            case.shapes.pop()


def _offer(case: _Case, question: Question) -> Answer:
    """Adds trials at one more shape to the plan, if the task can be judged there: as at the main
    shape, or one trial with native values if it only shows how the time grows.
    """
    planner = ShapePlanner(case.task, case.options)
    shape = planner.other(question.body["label"], question.body["kept"])
    if shape is not None:
        case.references.clear()
        case.place.trim()
        number = len(case.shapes)
        case.shapes.append(shape)
        names = [distributions.NATIVE]
        if question.body["label"] not in _LARGER:
            main = [one.distribution for one in case.trials if one.shape == 0]
            names = [name for name in main if name != case.special]
        for name in names:
            index = len(case.trials)
            seed = derive_seed(case.seed, "trial", index)
            case.trials.append(_Trial(index, number, name, seed))
    return Answer({"plan": _plan_report(case)})


def _grade(case: _Case, _question: Question) -> Answer:
    """The trivial answers that pass with the task's own inputs and weights, as other harnesses
    judge it.
    """
    reference = Reference(
        case.task,
        case.shapes[0].bound,
        derive_seed(case.seed, "grade"),
        case.place.device,
        case.options.precision,
        tf32=case.options.tf32,
    )
    reference.forget_disturbance()
    if case.is_in_eval_mode:
        reference.model.eval()
    first, second = (
        reference.run(
            reference.draw_inputs(derive_seed(case.seed, "grade", n), distributions.NATIVE), 0
        )
        for n in range(2)
    )
    found = hygiene.passing(case.comparer, first, hygiene.answered(second))
    known = case.passing[distributions.NATIVE]
    return Answer({"as_initialised": hygiene.named(found - known)})


def _plan_report(case: _Case) -> Json:
    assert case.native is not None
    return {
        "call_memory": case.call_memory,
        "needs_general": case.options.require_general or case.task.needs_general,
        "only_moves": case.native.only_moves,
        "mode": "eval" if case.is_in_eval_mode else "train",
        "grade": {"grade": case.grade.grade, "reasons": list(case.grade.reasons)},
        "shapes": [shape.report(case.sizes) for shape in case.shapes],
        "trials": [
            {"index": trial.index, "shape": trial.shape, "distribution": trial.distribution}
            for trial in case.trials
        ],
    }


# ---- Trials -------------------------------------------------------------------------------------


def _reference(case: _Case, shape: int) -> Reference:
    """The reference at one of the plan's shapes; the last one made is kept."""
    if shape not in case.references:
        for number in range(WEIGHTS_TRIES):
            seed = derive_seed(case.seed, "init", shape, number)
            reference = Reference(
                case.task,
                case.shapes[shape].bound,
                seed,
                case.place.device,
                case.options.precision,
                # A plan needs only the magnitude of error bounds.
                1 if case.seed == _PLANNING_SEED else ORDERS,
                case.options.tf32,
            )
            if case.is_in_eval_mode:
                reference.model.eval()
            if shape != 0 or _weights_discriminate(case, reference):
                break
        case.references[shape] = reference
    return case.references[shape]


def _weights_discriminate(case: _Case, reference: Reference) -> bool:
    """True if trivial answers are wrong under these weights, as they were when the task was opened:
    an extreme bias may drive every output into a clamp.
    """
    if not case.usable.get(distributions.NATIVE) or not region.state_of(reference.model):
        return True
    inputs = reference.draw_inputs(derive_seed(case.seed, "trial", 0), distributions.NATIVE)
    outcome = replace(reference.run(inputs, 0), find_error_bounds=lambda _: ErrorBounds())
    return not hygiene.passing(case.comparer, outcome)


def _init(case: _Case, question: Question) -> Answer:
    shape = _in_range(question.body["shape"], len(case.shapes))
    reference = _reference(case, shape)
    state = region.state_of(reference.model)
    values = [("", reference.init), *state.items()]
    entries, descriptor = region.pack_named(values, case.place.memory)
    assert case.native is not None
    body = {
        "init": entries[0]["tree"],
        "init_seed": reference.init_seed,
        "constants": reference.constants.noted,
        "training": reference.model.training,
        "precision": case.options.precision,
        "state": entries[1:],
        "init_operators": reference.init_operators | dict.fromkeys(case.native.casts, 1),
    }
    return Answer(body, [descriptor])


def _trial(case: _Case, question: Question) -> Answer:
    trial = case.trials[_in_range(question.body["index"], len(case.trials))]
    reference = _reference(case, trial.shape)
    _forget(case, trial.index)
    draw = partial(reference.draw_inputs, trial.seed, trial.distribution)
    given = draw()
    tree, descriptor = region.pack(given, case.place.memory)
    digest = case.place.digest(tree, region.tensors_of(given))
    trees = region.tensor_nodes(tree)
    if not case.draws_again or _bytes_of(region.tensors_of(given)) <= KEPT_BYTES_MAX:
        outcome = reference.run(given, trial.seed)
    else:
        kept = _mapped(case, trees, descriptor)
        outcome = reference.run_on(given, kept, draw, trial.seed)
        del kept
    del given
    case.place.trim()  # The candidate uses the device next.
    case.given[trial.index] = _Given(outcome, trees, os.dup(descriptor))
    body = {
        "inputs": tree,
        "digest": digest,
        "written": sorted(outcome.left),
        "outputs_bytes_max": _bytes_allowed(outcome),
        # True if the reference computes nothing: its outputs are inputs, or views of them.
        "returns_inputs": outcome.in_place and not outcome.left,
    }
    return Answer(body, [descriptor])


def _mapped(case: _Case, trees: list[Json], descriptor: int) -> list[torch.Tensor]:
    """The tensors of a trial's region, without a copy."""
    source = case.place.memory.mapping(descriptor)
    return [region.unpack(node, source) for node in trees]


def _forget(case: _Case, index: int) -> None:
    if index in case.given:
        os.close(case.given.pop(index).descriptor)


def _bytes_allowed(outcome: Outcome) -> int:
    """The maximum bytes of outputs and state that are read from a candidate process's response."""
    state = [*outcome.buffers.values(), *outcome.kept.values()]
    expected = [*region.tensors_of(outcome.outputs), *state, *outcome.written]
    needed = sum(tensor.numel() * tensor.element_size() for tensor in expected)
    return OUTPUT_SLACK_BYTES + 2 * needed


def _in_range(number: Any, size: int) -> int:
    if type(number) is not int or not 0 <= number < size:
        raise Refusal("protocol", f"{number!r} is out of range")
    return number


# ---- Checking -----------------------------------------------------------------------------------


def _check(case: _Case, question: Question) -> Answer:
    index = _in_range(question.body["index"], len(case.trials))
    if index not in case.given:
        raise Refusal("protocol", "check before trial, or a second check")
    given = case.given[index]
    try:
        checks = [*_check_outputs(case, index, given.outcome, question)]
        mutated = _mutated_inputs(case, given)
    finally:
        _forget(case, index)
    del given
    if index + 1 == len(case.trials):
        case.place.trim()  # Another process uses the device next.
    body = {
        "passed": not checks and not mutated,
        "checks": checks,
        "inputs_mutated": ", ".join(mutated),
    }
    return Answer(body)


def _check_outputs(case: _Case, index: int, outcome: Outcome, question: Question) -> Iterator[Json]:
    try:
        bytes_max = _bytes_allowed(outcome)
        source = case.place.memory.snapshot(question.descriptors[0], bytes_max)
        returned = region.unpack(question.body["outputs"], source, bytes_max)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise Refusal("protocol", "outputs come with what was written to inputs")
        got, written = returned
        trial = case.trials[index]
        if trial.distribution == distributions.ONLY_NAN:
            yield from specials.failures(outcome, got, case.comparer)
            return
        checks = failures(outcome, got, case.comparer)
        make = partial(_reference, case, trial.shape)
        yield from case.diagnoses.added(checks, trial, make, outcome, got)
        yield from case.comparer.failures(outcome.written, written, None, "written input")
        buffers = _state(question.body["buffers"], outcome.buffers, source, bytes_max)
        kept = _state(question.body["buffers"], outcome.kept, source, bytes_max)
    except Refusal as error:  # A candidate process's message cannot make the judge fail.
        yield {"path": "output", "problem": "malformed", "detail": str(error)[:300]}
        return
    for name in outcome.buffers:
        if name.endswith(_COUNTER):
            continue
        if name in buffers:
            yield from buffer_failures(outcome, name, buffers[name], case.comparer)
        else:
            yield {"path": f"buffer {name}", "problem": "missing", "detail": _MISSING_BUFFER}
    yield from _changed_state(case.comparer, outcome, kept)


def _changed_state(comparer: Comparer, outcome: Outcome, kept: dict[str, Any]) -> Iterator[Json]:
    """The state that a candidate's call changed and the reference's call does not."""
    for name, expected in outcome.kept.items():
        now = kept.get(name)
        is_set = isinstance(now, torch.Tensor) and region.are_alike(now, expected)
        if now is not None and is_set and not name.endswith(_COUNTER):
            now = now.reshape(expected.shape)
            yield from comparer.failures(expected, now, None, f"{name} after the call")


def _state(
    entries: list[Json], names: Container[str], source: region.Source, bytes_max: int
) -> dict[str, Any]:
    """The tensors of the candidate process's state that have these names."""
    return {
        entry["name"]: region.unpack(entry["tree"], source, bytes_max)
        for entry in entries
        if entry["name"] in names
    }


def _mutated_inputs(case: _Case, given: _Given) -> list[str]:
    """Inputs whose values after the call differ from the reference's."""
    now = _mapped(case, given.trees, given.descriptor)
    return overwritten_inputs(given.outcome, now, case.comparer)


# ---- Timing -------------------------------------------------------------------------------------


def _rest(case: _Case, _question: Question) -> Answer:
    """Frees the memory of a candidate's trials and timed calls."""
    for index in list(case.given):
        _forget(case, index)
    case.timing = None
    case.references.clear()
    case.place.trim()
    return Answer()


def _time(timed: TimedCalls, case: _Case, question: Question) -> Answer:
    """Handles timing requests; `plan` begins a candidate's."""
    operation = question.body["op"].removeprefix("time_")
    if operation == "speed":
        return Answer(device_speed.measure(case.place))
    if operation == "plan":
        for shape in [shape for shape in case.references if shape != 0]:
            del case.references[shape]
        seed = derive_seed(case.seed, "timing", question.body["seed"])
        reference, tf32 = _reference(case, 0), question.body["tf32"]
        case.timing = FreshInputs(
            case.place, reference, case.comparer, seed, timed, tf32, case.draws_again
        )
    if case.timing is None:
        raise Refusal("protocol", "timing begins with its plan")
    return case.timing.answer(operation, question)
