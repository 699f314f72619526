# SPDX-License-Identifier: Apache-2.0
"""The operators of a module as PyTorch dispatches them, and how they are connected.

The forward runs on the meta device, which has no data, under a TorchDispatchMode; so the style of
the source and the sizes do not matter. Views, copies and constants are not operators: a value is
known by the operator that made it. `structure` is equal for graphs that differ only in sizes and
literals.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.judge import task_code
from harness.judge.cost import NoGenerators, RecurrentLayers, is_view
from harness.judge.task import Task
from harness.worker.region import tensors_of

OPERATORS_MAX = 4000  # A module with more is counted up to here.

# Families by the start of an operator's name in aten; the first that matches.
FAMILIES = (
    ("attention", ("_scaled_dot_product", "scaled_dot_product", "_native_multi_head")),
    ("recurrent", ("lstm", "gru", "rnn_")),
    ("convolution", ("convolution", "conv", "_convolution", "slow_conv", "im2col", "col2im")),
    ("pooling", ("max_pool", "avg_pool", "_adaptive", "adaptive", "lp_pool", "fractional_max")),
    ("normalisation", ("native_batch_norm", "native_layer_norm", "native_group_norm", "batch_norm",
                       "_native_batch", "cudnn_batch", "_fused_rms", "linalg_vector_norm",
                       "renorm", "_weight_norm", "var_mean", "std_mean")),
    ("softmax", ("_softmax", "_log_softmax", "softmax", "logsumexp")),
    ("matmul", ("mm", "addmm", "bmm", "baddbmm", "matmul", "mv", "dot", "addmv", "addbmm",
                "linear", "outer", "addr", "_cdist", "cdist")),
    ("loss", ("nll_loss", "mse_loss", "l1_loss", "smooth_l1", "huber", "binary_cross", "kl_div",
              "_ctc", "multi_margin", "soft_margin")),
    ("scan", ("cumsum", "cumprod", "cummax", "cummin", "_cummax", "_cummin", "logcumsumexp")),
    ("reduction", ("sum", "mean", "amax", "amin", "argmax", "argmin", "prod", "max.", "min.",
                   "std", "var", "norm", "any", "all", "count_nonzero", "median", "aminmax",
                   "trace")),
    ("indexing", ("index", "gather", "scatter", "embedding", "cat", "stack", "topk", "sort",
                  "flip", "roll", "constant_pad", "pad", "reflection_pad", "replication_pad",
                  "upsample", "grid_sampler", "one_hot", "tril", "triu", "masked_", "take", "where",
                  "slice_scatter", "select_scatter", "pixel_", "unfold", "repeat", "nonzero",
                  "split", "_unsafe_index", "affine_grid")),
)  # fmt: skip
_COPIES = {"clone", "_to_copy", "contiguous", "detach", "copy", "copy_", "lift_fresh", "alias",
           "_unsafe_view", "_reshape_alias", "_assert_async", "resolve_conj", "_conj"}  # fmt: skip
_COMMUTATIVE = {"add", "mul", "maximum", "minimum", "logical_and", "logical_or", "eq", "ne"}
_SAME = {"addmm": "mm", "addmv": "mv", "baddbmm": "bmm"}


@dataclass(frozen=True)
class Graph:
    """`operators` in order of evaluation; `structure` and `paths` do not depend on sizes."""

    operators: list[str]
    structure: str
    paths: list[str]  # Chains of three connected operators, sorted, each once.

    def families(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for name in self.operators:
            family = family_of(name)
            counts[family] = counts.get(family, 0) + 1
        return counts


def family_of(operator: str) -> str:
    """The family of an aten operator; "elementwise" if no other family has it."""
    for family, starts in FAMILIES:
        if any((operator + ".").startswith(start) for start in starts):
            return family
    return "elementwise"


@dataclass(frozen=True)
class _Value:
    """The origin of a tensor: its operator, the operators before it, and a hash of the graph
    above.
    """

    digest: str
    chains: frozenset[tuple[str, ...]]  # Chains of one or two operators that end here.


_GIVEN = _Value("given", frozenset())


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operators: list[str] = []
        self.paths: set[str] = set()
        self._values: dict[int, _Value] = {}
        self._alive: list[torch.Tensor] = []  # Keeps tensors alive, so that ids are unique.

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self.record(func._opname.rstrip("_") or func._opname, func, args, kwargs, result)
        return result

    def record(self, name: str, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        given = [self.value_of(one) for one in tensors_of([list(args), kwargs])]
        made = tensors_of(result)
        if not made:
            return
        if not given or name in _COPIES or (func is not None and is_view(func)):
            # After `copy_` the target has the source's origin; a factory's result is a constant.
            source = given[-1] if name == "copy" and given else (given or [_GIVEN])[0]
            self._keep(made, source)
            return
        name = _SAME.get(name, name)
        if len(self.operators) < OPERATORS_MAX:
            self.operators.append(name)
        chains = {(name,)} | {(*chain[-1:], name) for one in given for chain in one.chains}
        self.paths |= {
            ">".join((*chain, name)) for one in given for chain in one.chains if len(chain) == 2
        }
        digests = [one.digest for one in given]
        if name in _COMMUTATIVE:
            digests.sort()
        digest = hashlib.sha256(f"{name}({','.join(digests)})".encode()).hexdigest()[:16]
        self._keep(made, _Value(digest, frozenset(chains)))

    def add_layer(self, name: str, args: Any, result: Any) -> None:
        self.record(name, None, args[:1], {}, result)

    def _keep(self, made: list[torch.Tensor], value: _Value) -> None:
        for one in made:
            self._values[id(one)] = value
            self._alive.append(one)

    def value_of(self, tensor: torch.Tensor) -> _Value:
        return self._values.get(id(tensor), _GIVEN)


def graph_of(source: str, device: str = "meta") -> Graph:
    """The graph of a task's forward. Raises whatever its program raises on the device.

    A program that reads values needs "cpu", where its cost depends on its sizes.
    """
    task, place, recorder = Task(source), torch.device(device), _Recorder()
    with warnings.catch_warnings(), torch.no_grad(), task.running(place):
        warnings.simplefilter("ignore")
        with place, NoGenerators():
            module = task.run({})
            model, inputs = task_code.model_and_inputs(module)
            with RecurrentLayers(recorder.add_layer), recorder:
                outputs = task_code.forward(model, inputs)
    ends = "+".join(recorder.value_of(one).digest for one in tensors_of(outputs))
    structure = hashlib.sha256(ends.encode()).hexdigest()[:16]
    return Graph(recorder.operators, structure, sorted(recorder.paths))
