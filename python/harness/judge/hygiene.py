# SPDX-License-Identifier: Apache-2.0
"""Tests a task's comparison: finds trivial answers, which compute nothing, that pass it.

For each distribution under which a task is judged, `passing` names the trivial answers that its
comparison accepts. `grade` classifies the task:

  trivial  one answer is accepted under every distribution: the task cannot tell it from a kernel
           that computes, so no verdict of the task earns a reward by passing
  weak     an answer is accepted on the task's own inputs and refused under others, or the biases
           make no difference
  good     neither

The answers are zeros; a constant (the mean of another trial's output); the mean of the expected
output itself; another trial's output, unchanged; and each input with the right number of elements.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from harness.judge.compare import Comparer
from harness.judge.reference import Outcome, Reference
from harness.judge.task_code import attempt, run
from harness.worker import region

SAMPLE = 1 << 15  # Elements of an output that are compared.
PHRASES = {
    "zeros": "zeros",
    "constant": "a constant",
    "mean": "the mean of the expected output",
    "previous_output": "the output for other inputs",
    "no_bias": "the reference without its biases",
}


@dataclass(frozen=True)
class Grade:
    """`reasons` are empty for a good task."""

    grade: str
    reasons: tuple[str, ...] = ()


def sampled(value: Any) -> Any:
    """The value with every n-th element of each tensor, flat, so that about SAMPLE are left.

    They are on the host: each read of a device's value waits for all other work on the device.
    """
    return region.map_tensors(value, _sample)


def answered(outcome: Outcome) -> Any:
    """A sample of the reference's results: its outputs, and the inputs that it writes."""
    return sampled(_as_tensors([outcome.outputs, outcome.written]))


def _as_tensors(value: Any) -> Any:
    """The value with its floating numbers as tensors."""
    if isinstance(value, float):
        return torch.tensor(value)
    if isinstance(value, dict):
        return {key: _as_tensors(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_tensors(item) for item in value]
    return value


def passing(comparer: Comparer, outcome: Outcome, previous: Any = None) -> frozenset[str]:
    """The trivial answers that are accepted in place of a reference's outputs, on a sample.

    The allowance is a trial's, with the error bound: if an output has only rounding errors, zeros
    are right. `previous` are sampled outputs for other inputs, or None where there are none.
    """
    expected = answered(outcome)
    answers = {
        "zeros": region.map_tensors(expected, torch.zeros_like),
        "mean": region.map_tensors(expected, _mean_like),
    }
    if previous is not None:
        answers["constant"] = region.map_tensors(previous, _mean_like)
        answers["previous_output"] = previous
    if isinstance(outcome.outputs, torch.Tensor):
        for number, one in enumerate(region.tensors_of(outcome.inputs)):
            if one.numel() == outcome.outputs.numel():
                answers[f"input[{number}]"] = [_sample(one), expected[1]]
    error_bound: Any = None
    # Numbers that are not tensors have no error bound.
    if outcome.error_bound is not None and not _has_numbers(outcome.outputs):
        error_bound = [sampled(outcome.error_bound), None]
    return frozenset(
        name for name in answers if not comparer.failures(expected, answers[name], error_bound)
    )


def _has_numbers(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(map(_has_numbers, value))
    return not isinstance(value, torch.Tensor)


def ignores_biases(comparer: Comparer, reference: Reference, outcome: Outcome, seed: int) -> bool:
    """True if the reference's outputs are accepted when its biases are zeros."""
    model = attempt(run, "init", copy.deepcopy, reference.model)
    if model is None:
        return False
    biases = [one for name, one in model.named_parameters() if name.split(".")[-1] == "bias"]
    if not biases:
        return False
    for bias in biases:
        bias.zero_()
    outputs = reference.run_by(model, outcome.inputs, seed)
    expected, got = (sampled(_as_tensors(value)) for value in (outcome.outputs, outputs))
    return not comparer.failures(expected, got, None)


def grade(found: Mapping[str, frozenset[str]], own: str, has_idle_biases: bool) -> Grade:
    """The grade from the answers that pass under each distribution; `own` is the native one."""
    common = frozenset.intersection(*found.values()) if found else frozenset()
    if common:
        return Grade("trivial", (f"every trial is passed by {', '.join(named(common))}",))
    on_own = named([*found.get(own, ()), *(["no_bias"] if has_idle_biases else [])])
    reasons = (
        [f"on the task's own inputs a trial is passed by {', '.join(on_own)}"] if on_own else []
    )
    return Grade("weak" if reasons else "good", tuple(reasons))


def named(answers: Iterable[str]) -> list[str]:
    return [PHRASES.get(name, f"a copy of {name}") for name in sorted(answers)]


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // SAMPLE)].cpu()


def _mean_like(tensor: torch.Tensor) -> torch.Tensor:
    """Replaces each element by the mean, or by the most frequent value for integers and booleans.

    A single element is its own mean, which would always pass, so it becomes zero.
    """
    if tensor.numel() < 2 or tensor.is_complex():
        return torch.zeros_like(tensor)
    if tensor.is_floating_point():
        return torch.full_like(tensor, float(tensor.double().mean()))
    values, counts = tensor.unique(return_counts=True)  # type: ignore[no-untyped-call]
    frequent: torch.Tensor = values[counts.argmax()]
    return frequent.expand(tensor.shape).clone()
