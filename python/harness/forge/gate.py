# SPDX-License-Identifier: Apache-2.0
"""The validity gate: decides whether a task is good enough to be used (docs/forge.md).

All checks run the reference as the judge does, with the judge's own comparison.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch

from harness.judge import distributions
from harness.judge.judge import (
    Judge,
    _reference,
    distributions_of_candidates,
    sensible_outcome,
)
from harness.judge.reference import Outcome, is_finite
from harness.judge.task import Task
from harness.judge.task_code import model_and_inputs
from harness.worker.region import map_tensors, same_bytes, state_of, tensors_of
from harness.worker.wire import Json

STD_MIN = 0.01
PROBE_TOLERANCE = 1e-6  # The interpreter against PyTorch, both in double precision.
ERROR_BOUND_SHARE = 0.1  # The fraction of the tolerance that the reference's own error may use.
_NOISE_SEED = 7
_SCALES = (16.0, 32.0)  # Between the native values and the large ones.
_SCALE_SEEDS = (1, 2)
OWN_SHARE = 0.25  # The fraction of a unit test's tolerance for the reference's rounding.
STEP = 0.5  # A change of an input or parameter that must change the output.


def complaints(judge: Judge, probe: Json | None) -> list[str]:
    """The reasons to reject the task of an opened judge; empty for a valid task."""
    case = judge._opened
    assert case is not None
    reference = _reference(case, 0)
    inputs = reference.draw_inputs(1, distributions.NATIVE)
    first = reference.run(inputs, 1)
    if not tensors_of(first.outputs):
        return ["the output is no tensor"]
    found = [*_of_outputs(case, reference, first), *_of_answers(case, reference, first)]
    if not found and probe is not None:
        types = [str(tensor.dtype) for tensor in tensors_of(first.outputs)]
        predicted = ["torch." + entry["dtype"] for entry in probe["outputs"]]
        if types != predicted:
            return [f"the output is {types}, predicted {predicted}"]
        found = complaints_of_probe(case.task, probe)
    return found


def _of_outputs(case: Any, reference: Any, first: Outcome) -> list[str]:
    if not is_finite(first.outputs):
        return ["the output is not finite"]
    again = reference.run(first.inputs, 1)
    pairs = zip(tensors_of(first.outputs), tensors_of(again.outputs))
    if not all(same_bytes(one, other) for one, other in pairs):
        return ["two runs differ"]
    other = reference.run(reference.draw_inputs(2, distributions.NATIVE), 1)
    found = []
    if not case.comparer.failures(first.outputs, other.outputs, first.error_bound):
        found.append("other inputs give the same output")
    for output, bound in _with_bounds(first):
        found += _of_output(case, first.inputs, output, bound)
    return found


def _with_bounds(outcome: Outcome) -> list[tuple[Any, Any]]:
    """Each output with its error bound, or with None."""
    outputs, bound = _parts(outcome.outputs), outcome.error_bound
    return list(zip(outputs, [None] * len(outputs) if bound is None else _parts(bound)))


def _parts(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def _of_output(case: Any, inputs: Any, output: torch.Tensor, bound: Any) -> list[str]:
    """The reasons about one output tensor; a single number has no spread of its own."""
    found = []
    if output.numel() > 1:
        if float(output.double().std()) < STD_MIN:
            return ["the output is constant"]
        for axis in range(output.dim()):
            if output.shape[axis] > 1:
                if float(output.double().std(dim=axis).max()) < 1e-4:
                    found.append(f"the output is constant along axis {axis}")
    answers = [("zeros", torch.zeros_like(output))]
    if output.numel() > 1:
        answers.append(("the mean", torch.full_like(output, float(output.double().mean()))))
    for name, answer in answers:
        if not case.comparer.failures(output, answer, bound):
            found.append(f"{name} would pass")
    for tensor in tensors_of(inputs):
        if tensor.shape == output.shape:
            if not case.comparer.failures(output, tensor, bound):
                found.append("an input would pass")
    if _is_badly_conditioned(case, output, bound):
        found.append("badly conditioned")
    return found


def _is_badly_conditioned(case: Any, output: torch.Tensor, bound: Any) -> bool:
    if not isinstance(bound, torch.Tensor) or not output.is_floating_point():
        return False
    wide = output.double()
    wide = torch.where(wide.isfinite(), wide, 0.0)
    scale = torch.maximum(wide.abs(), wide.square().mean().sqrt())
    name = str(output.dtype).removeprefix("torch.")
    # The error of a half is its rounding error, which no kernel avoids.
    share = ERROR_BOUND_SHARE if name == "float32" else 1.0
    allowed = share * case.comparer.tolerances[name] * scale
    return bool((bound.to(scale) > allowed).any())


def complaints_of_other_values(judge: Judge) -> list[str]:
    """The conditioning under the other values with which candidates are judged, such as large ones.

    The forge then draws another task; for a task written by a person the judge's error bound
    decides.
    """
    case = judge._opened
    assert case is not None
    reference = _reference(case, 0)
    for name, inputs in _other_inputs(case, reference):
        outcome = sensible_outcome(case, inputs)
        if outcome is None:
            continue
        if any(_is_badly_conditioned(case, *pair) for pair in _with_bounds(outcome)):
            return [f"badly conditioned: {name}"]
    return []


def _other_inputs(case: Any, reference: Any) -> Iterator[tuple[str, Any]]:
    names = distributions_of_candidates(case)
    for name in names:
        yield name, reference.draw_inputs(1, name)
    if distributions.LARGE not in names:
        return
    # With large values, saturated outputs of a small tensor hide an ill-conditioned element, which
    # one of millions would show; intermediate values do not.
    for seed, factor in itertools.product(_SCALE_SEEDS, _SCALES):
        drawn = reference.draw_inputs(seed, distributions.NATIVE)
        yield distributions.LARGE, map_tensors(drawn, functools.partial(_scaled, factor))


def _scaled(factor: float, tensor: torch.Tensor) -> torch.Tensor:
    return factor * tensor if tensor.is_floating_point() else tensor


def _of_answers(case: Any, reference: Any, first: Outcome) -> list[str]:
    """The inputs and parameters that do not change the output."""
    found = []
    # The noise has its own generator: a normalisation would undo noise that repeats the inputs.
    noise = torch.Generator().manual_seed(_NOISE_SEED)

    def moved_by(tensor: torch.Tensor) -> torch.Tensor:
        return STEP * (1 + torch.rand(tensor.shape, generator=noise, dtype=torch.float32)).to(
            tensor
        )

    def has_no_effect() -> bool:
        outputs = reference.run(inputs, 1).outputs
        return not case.comparer.failures(first.outputs, outputs, first.error_bound)

    for number, tensor in enumerate(tensors_of(first.inputs)):
        inputs = map_tensors(first.inputs, torch.clone)
        moved = tensors_of(inputs)[number]
        if tensor.is_floating_point():
            moved.add_(moved_by(tensor))
        else:  # Indices are permuted, since other indices may not exist.
            moved.copy_(moved.flatten().roll(1).reshape(moved.shape))
        if has_no_effect():
            found.append(f"input {number} does not matter")
    inputs = first.inputs
    for name, parameter in state_of(reference.model).items():
        if not parameter.is_floating_point():
            continue  # It is a counter.
        before = parameter.detach().clone()
        parameter.detach().add_(moved_by(before))
        if has_no_effect():
            found.append(f"parameter {name} does not matter")
        parameter.detach().copy_(before)
    return found


def passes_unit_test(task: Task, test: Json) -> bool:
    """True if the test's outputs equal PyTorch's, in double precision and in the task's own
    types.
    """
    if complaints_of_probe(task, test):
        return False
    model, _ = model_and_inputs(task.run(test["sizes"]))
    state = state_of(model)
    for entry in test["parameters"]:
        state[entry["name"]].detach().copy_(_tensor(entry))
    inputs = [_tensor(entry).to(getattr(torch, entry["dtype"])) for entry in test["inputs"]]
    for output, entry in zip(_parts(model(*inputs)), test["outputs"]):
        # An implementation that rounds in another order needs the rest of the tolerance.
        share = OWN_SHARE * test["tolerance"]
        if not torch.allclose(output.double(), _tensor(entry).double(), rtol=share, atol=share):
            return False
    return True


def complaints_of_probe(task: Task, probe: Json) -> list[str]:
    """The forge's interpreter against PyTorch, both in double precision, at small sizes."""
    model, inputs = model_and_inputs(task.run(probe["sizes"]))
    model.double()
    state = state_of(model)
    given = {entry["name"]: entry for entry in probe["parameters"]}
    if sorted(given) != sorted(state):
        return [f"parameters are {sorted(state)}, predicted {sorted(given)}"]
    for name, entry in given.items():
        if list(state[name].shape) != entry["shape"]:
            return [f"parameter {name} has shape {list(state[name].shape)}, not {entry['shape']}"]
        state[name].detach().copy_(_tensor(entry))
    drawn = [list(tensor.shape) for tensor in tensors_of(inputs)]
    if drawn != [entry["shape"] for entry in probe["inputs"]]:
        return [f"inputs have shapes {drawn}, which was not predicted"]
    with torch.no_grad():
        outputs = model(*map(_tensor, probe["inputs"]))
    if len(_parts(outputs)) != len(probe["outputs"]):
        return [f"{len(_parts(outputs))} outputs, predicted {len(probe['outputs'])}"]
    for output, entry in zip(_parts(outputs), probe["outputs"]):
        expected = _tensor(entry)
        if not is_finite(expected):
            return ["an operator leaves its domain"]
        if output.shape != expected.shape:
            return [f"shape {list(output.shape)}, predicted {list(expected.shape)}"]
        error = float((output - expected).abs().max() / (1 + expected.abs().max()))
        if not error < PROBE_TOLERANCE:
            return [f"the interpreter is off by {error:.2g}"]
    return []


def _tensor(entry: Json) -> torch.Tensor:
    values = [math.nan if value is None else value for value in entry["values"]]
    dtype = torch.int64 if entry.get("is_whole") else torch.float64
    return torch.tensor(values, dtype=torch.float64).reshape(entry["shape"]).to(dtype)
