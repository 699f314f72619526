# SPDX-License-Identifier: Apache-2.0
"""A call shaped like KernelBench's src/eval.py, judged by MooreEval.

from musacoder.kernelbench import eval_kernel_against_ref
result = eval_kernel_against_ref(ref_src, custom_src)
result.compiled, result.correctness, result.runtime
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from musacoder.judged import Judged
from musacoder.local import evaluate

# The outcomes of answers that failed before a module was built.
_NOT_COMPILED = ("extraction", "compile")
_NOT_JUDGED = ("infra", "unsupported")
_PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


@dataclass
class KernelExecResult:
    """KernelBench's fields; runtimes are milliseconds, -1 if not timed."""

    compiled: bool = False
    correctness: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    runtime: float = -1.0
    runtime_stats: dict[str, Any] = field(default_factory=dict)
    ref_runtime: float = -1.0
    ref_runtime_stats: dict[str, Any] = field(default_factory=dict)


def eval_kernel_against_ref(
    original_model_src: str, custom_model_src: str, *, precision: Any = None, **_: Any
) -> KernelExecResult | None:
    """Judges custom_model_src; None, as in KernelBench, if it could not be judged.

    precision is a torch.dtype or its name: inputs and models are cast to it. Without it they keep
    the task's types, or the service's option applies. KernelBench's other arguments (seeds, numbers
    of trials, build folder, device) are accepted and ignored: the service decides about them.
    Raises ValueError for a precision other than fp32, fp16 and bf16.
    """
    options = {} if precision is None else {"precision": _precision_name(precision)}
    return _result_of(evaluate(original_model_src, custom_model_src, options))


def _precision_name(precision: Any) -> str:
    name = str(precision).removeprefix("torch.")
    name = _PRECISIONS.get(name, name)
    if name not in _PRECISIONS.values():
        raise ValueError(f"precision: expected fp32, fp16 or bf16, got {precision!r}")
    return name


def _result_of(judged: Judged) -> KernelExecResult | None:
    if judged.outcome in _NOT_JUDGED:
        return None
    result = KernelExecResult(
        compiled=judged.outcome not in _NOT_COMPILED,
        correctness=judged.passed,
        metadata={
            "outcome": judged.outcome,
            "feedback": judged.feedback,
            "protocol": judged.verdict["protocol"],
            "task_grade": judged.verdict["task_grade"],
        },
    )
    performance = judged.verdict["outcome"].get("performance")
    if performance:
        result.runtime = performance["time_us"]["median"] / 1000
        result.runtime_stats = performance["time_us"]
        result.ref_runtime = performance["time_eager_us"]["median"] / 1000
        result.ref_runtime_stats = performance["time_eager_us"]
    return result
