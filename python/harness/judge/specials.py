# SPDX-License-Identifier: Apache-2.0
"""Chooses the tasks that get a trial with NaN and infinities, and checks a candidate's outputs
there.

In PyTorch NaN propagates through a sum or a maximum, and `fmaxf` drops it. Dropping it is a fault
in a maximum, but usual in a clamp; the result for an infinity depends on the order in which a
formula is evaluated. So there are two kinds of such trials, and most tasks have none:

- a reference all of whose outputs are elements of its inputs (a maximum, a sort) is compared in
  full, with NaN, infinities and zeros among the inputs;
- a reference that only adds, multiplies and selects gets some NaN: where it returns NaN, a
  candidate must not return numbers computed from the other data. An additional NaN is not a fault,
  nor is a constant (a clamp's bound) in place of a NaN.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from harness.judge import distributions, reference
from harness.judge.compare import Comparer
from harness.judge.operators import Operators
from harness.judge.reference import Outcome, Reference
from harness.worker.region import map_tensors, tensors_of
from harness.judge.task_code import attempt
from harness.worker.wire import Json

CONSTANTS_MAX = 2  # A clamp has two bounds.
ELEMENTS_MAX = 1 << 25  # A larger task has no room for the search in `_selects`.

# Operators that no kernel implements by a clamp or a running maximum. Norms and softmax are left
# out: honest kernels clamp a variance, or compare with a maximum that NaN never exceeds.
_CARRYING = frozenset("""
    add sub rsub mul neg square addcmul mse_loss sum mean cumsum
    mm bmm addmm baddbmm mv addmv dot convolution
    avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
    amax amin max min aminmax max_pool1d max_pool2d max_pool3d
    max_pool2d_with_indices max_pool3d_with_indices cummax cummin _cummax_helper _cummin_helper
    sort topk flip roll gather index index_select embedding cat stack where masked_fill tril triu
    clone copy _to_copy contiguous constant_pad_nd repeat equal detach lift_fresh
    zeros ones full empty empty_like zeros_like ones_like full_like arange scalar_tensor fill zero
    new_zeros new_ones new_empty new_full
    """.split())


def distribution_for(subject: Reference) -> str | None:
    """The distribution of a task's trial with special values; None for most tasks."""
    operators = Operators()
    native = _run(subject, distributions.NATIVE, operators)
    if native is None or native.written or not operators.counts.keys() <= _CARRYING:
        return None
    tensors = tensors_of([native.inputs, native.outputs])
    if sum(one.numel() for one in tensors) > ELEMENTS_MAX:
        return None
    name = distributions.NONFINITE if _selects(native) else distributions.ONLY_NAN
    outcome = _run(subject, name)
    if outcome is None or not any(bool(one.isnan().any()) for one in _floats(outcome.outputs)):
        return None
    return name


def _run(subject: Reference, name: str, mode: Any = None) -> Outcome | None:
    inputs = attempt(subject.draw_inputs, 0, name)
    with mode or contextlib.nullcontext():
        return None if inputs is None else attempt(subject.run, inputs, 0)


def _selects(outcome: Outcome) -> bool:
    """True where each output element is an element of the inputs."""
    given = [one.reshape(-1) for one in _floats(outcome.inputs)]
    return bool(given) and all(
        bool(torch.isin(one, torch.cat(given)).all()) for one in _floats(outcome.outputs)
    )


def _floats(value: Any) -> list[torch.Tensor]:
    return [one.double() for one in tensors_of(value) if one.is_floating_point()]


def failures(outcome: Outcome, got: Any, comparer: Comparer) -> list[Json]:
    """The faults of a candidate's outputs for inputs with some NaN: any difference of finite
    outputs, and numbers in place of NaN that are not constants.
    """
    given = iter(tensors_of(got))
    found: list[Json] = []

    def corrected(expected: torch.Tensor) -> torch.Tensor:
        one = next(given, None)
        if one is None or (one.shape, one.dtype) != (expected.shape, expected.dtype):
            return expected.new_empty(0)
        wide = one.double()
        values = wide[expected.isnan() & wide.isfinite()]
        if torch.unique(values).numel() > CONSTANTS_MAX:
            detail = f"{values.numel()} elements are numbers where the reference returns NaN"
            found.append({"path": "output", "problem": "nonfinite", "detail": detail})
        return torch.where(expected.isnan() | ~wide.isfinite(), expected, one)

    adjusted = map_tensors(outcome.outputs, corrected)
    return [*found, *reference.failures(outcome, adjusted, comparer)]
