# SPDX-License-Identifier: Apache-2.0
"""The dtype in which a task is judged: the task's own, or another for all floating tensors.

KernelBench casts inputs and model in the same way. Integers and booleans stay as they are.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.worker.region import map_memory, map_tensors

# The dtypes, by the values of --precision.
DTYPES: dict[str, torch.dtype | None] = {
    "task": None,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}


def cast(value: Any, precision: str) -> Any:
    """A value with its floating tensors in that precision."""
    dtype = DTYPES[precision]
    if dtype is None:
        return value

    def to_precision(tensor: torch.Tensor) -> torch.Tensor:
        is_floating = tensor.is_floating_point()
        return map_memory(tensor, lambda flat: flat.to(dtype)) if is_floating else tensor

    return map_tensors(value, to_precision)


def cast_model(model: torch.nn.Module, precision: str) -> torch.nn.Module:
    """A model with its floating parameters and buffers in that precision."""
    dtype = DTYPES[precision]
    return model if dtype is None else model.to(dtype=dtype)
