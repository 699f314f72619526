# SPDX-License-Identifier: Apache-2.0
"""The reference at one shape: its model, secret inputs from a seed, and its results.

Everything here is deterministic in the seed, and a trial does not depend on the trials before it: a
forward's changes of buffers and inputs are recorded and undone.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from harness.judge import distributions, task_code
from harness.judge.closeness import error_bound_of, is_ill_conditioned
from harness.judge.compare import Comparer
from harness.judge.operators import Operators
from harness.judge.rounding import SequentialSumMode, Tf32Mode
from harness.worker import pieces
from harness.worker.draws import made_on
from harness.worker.perturb import Constants
from harness.worker.precision import cast, cast_model
from harness.worker.program import build, construct
from harness.worker.region import (
    CPU,
    map_memory,
    map_tensors,
    same_bytes,
    state_of,
    state_to_check,
    tensors_of,
)
from harness.judge.task import Task
from harness.judge.task_code import attempt
from harness.worker.wire import Json, Refusal

TF32_RUNS = 2  # Runs with random signs of the roundings.
ORDERS = 3  # One run's roundings may cancel by chance; all three rarely do.
# The factor of a buffer's error bound: the worst of thousands of statistics is compared.
BUFFER_ERROR_BOUND_FACTOR = 2.0
# Limits for state and inputs in double precision.
_ERROR_BOUND_BYTES_MAX_ON_CPU = 256 << 20
_ERROR_BOUND_BYTES_MAX_ON_DEVICE = 4 << 30


@dataclass(frozen=True)
class ErrorBounds:
    """The reference error bounds (closeness.py)."""

    outputs: Any = None  # None if unknown.
    buffers: Mapping[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The results of one forward of the reference."""

    outputs: Any
    buffers: Mapping[str, torch.Tensor]  # The buffers that the forward changed, afterwards.
    in_place: bool  # True if all outputs are in the memory of inputs.
    left: Mapping[int, torch.Tensor]  # The input tensors that the forward changed, by number.
    draw: Callable[[], Any]  # The inputs before the forward.
    find_error_bounds: Callable[[Any], ErrorBounds]  # Takes these inputs.
    has_views: bool = False  # Some outputs are in inputs' memory, or not contiguous.
    # The parameters and buffers that the forward did not change, if all fit STATE_BYTES_CHECKED.
    kept: Mapping[str, torch.Tensor] = field(default_factory=dict)
    # The buffers that the forward changed, as they were.
    buffers_before: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def on_cpu(self) -> Outcome:
        """A copy in the host's memory."""
        inputs, outputs, error_bound = (
            map_tensors(value, torch.Tensor.cpu)
            for value in (self.inputs, self.outputs, self.error_bound)
        )
        error_bounds = ErrorBounds(error_bound, _on_cpu(self.error_bounds.buffers))
        left = {number: one.cpu() for number, one in self.left.items()}
        buffers = _on_cpu(self.buffers)
        before = _on_cpu(self.buffers_before)
        return Outcome(
            outputs,
            buffers,
            self.in_place,
            left,
            lambda: inputs,
            lambda _: error_bounds,
            buffers_before=before,
        )

    @functools.cached_property
    def inputs(self) -> Any:
        """The inputs, drawn when needed: a large task has no memory for them beside its outputs."""
        return self.draw()

    @property
    def written(self) -> list[torch.Tensor]:
        return [self.left[number] for number in sorted(self.left)]

    @functools.cached_property
    def error_bounds(self) -> ErrorBounds:
        """The error bounds, computed when needed: they take several more forwards."""
        return self.find_error_bounds(self.inputs)

    @property
    def error_bound(self) -> Any:
        return self.error_bounds.outputs


def derive_seed(seed: int, *parts: object) -> int:
    """A seed for one purpose, from the judge's secret one."""
    text = repr((seed, *parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


class Reference:
    """One task's Model with one binding of its sizes."""

    def __init__(
        self,
        task: Task,
        bound: Mapping[str, int],
        init_seed: int,
        device: torch.device = CPU,
        precision: str = "task",
        orders: int = ORDERS,
        tf32: bool = False,
    ) -> None:
        self.init_seed = init_seed
        self.constants = Constants()
        self._device = device
        self._precision = precision
        self._orders_max = orders
        self._tf32 = tf32
        self._num_orders = orders  # Reduced when a run shows that fewer suffice.
        self._task = task
        with task.running(device):
            self._module: ModuleType = task.run(bound)
            _set_seed(init_seed, device)  # The device may be the task's default, and draw.
            self.init = cast(task_code.init_of(self._module), precision)
            self.model = cast_model(task_code.run("init", made_on, device, self._made), precision)

    def _made(self) -> torch.nn.Module:
        # A private copy: the constructor must not change what the candidate is given.
        init = copy.deepcopy(self.init)
        self.constants = Constants()
        operators = Operators()
        with operators.of_constructor():
            model = construct(self._module.Model, init, self.init_seed, self.constants)
        self.init_operators = dict(operators.calls)  # The operators that its constructor calls.
        return model

    def draw_inputs(self, seed: int, distribution: str) -> Any:
        """Fresh inputs, with the strides that the task gives them.

        On a CUDA device they are drawn there, by PyTorch's Philox generator, which counts: the same
        seed gives the same bits.
        """
        _set_seed(seed, self._device)
        return distributions.apply(distribution, self.draw_more())

    def draw_more(self) -> Any:
        """The generators' next inputs, in their native distribution."""
        with self._task.running(self._device):
            drawn = task_code.inputs_for(self.model, self._module, self._device)
        there = map_tensors(drawn, lambda one: map_memory(one, lambda flat: flat.to(self._device)))
        return cast(there, self._precision)

    def run(self, inputs: Any, seed: int) -> Outcome:
        """One forward. Raises Refusal("task") for an exception of the reference."""
        return self.run_on(_clone(inputs), inputs, lambda: inputs, seed)

    def run_on(self, given: Any, kept: Any, draw: Callable[[], Any], seed: int) -> Outcome:
        """One forward on `given` itself, where `kept` is a copy and `draw` makes another copy."""
        before = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        checked = state_to_check(state_of(self.model))
        state = {name: one.detach().clone() for name, one in checked.items()}
        with self._task.running(self._device):
            outputs = _forward(self.model, given, seed, self._device)
        in_place = _lies_in(outputs, given)
        has_views = not all(map(torch.Tensor.is_contiguous, tensors_of(outputs))) or any(
            _lies_in(one, given) for one in tensors_of(outputs)
        )
        outputs = self._own(outputs, given)
        pairs = enumerate(zip(tensors_of(kept), tensors_of(given)))
        left = {number: now for number, (old, now) in pairs if not same_bytes(old, now)}
        changed = self._restore(before)
        after = state_of(self.model)
        unchanged = {
            name: one
            for name, one in state.items()
            if name in after and name not in changed and _is_same(one, after[name])
        }

        def find_error_bounds(inputs: Any) -> ErrorBounds:
            return self._error_bounds(inputs, outputs, changed, seed)

        old = {name: before[name] for name in changed}
        return Outcome(
            outputs, changed, in_place, left, draw, find_error_bounds, has_views, unchanged, old
        )

    def _own(self, outputs: Any, given: Any) -> Any:
        """The outputs, each in memory that nothing else has."""
        taken = {_storage(one) for one in [*tensors_of(given), *state_of(self.model).values()]}

        def own(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor.detach()
            is_whole = tensor.untyped_storage().nbytes() == tensor.nbytes
            if not is_whole or not tensor.is_contiguous() or _storage(tensor) in taken:
                return tensor.clone()
            taken.add(_storage(tensor))
            return tensor

        return map_tensors(outputs, own)

    def run_by(
        self,
        model: torch.nn.Module,
        inputs: Any,
        seed: int,
        mode: contextlib.AbstractContextManager[Any] | None = None,
    ) -> Any:
        """Another model's outputs for inputs, such as a changed copy's; optionally under a mode
        that observes or changes its operators.
        """
        given = _clone(inputs)
        with self._task.running(self._device), mode or contextlib.nullcontext():
            return _forward(model, given, seed, self._device)

    @contextlib.contextmanager
    def as_candidate(self) -> Iterator[None]:
        """In this context the model may be called like a candidate's, on inputs that it may keep:
        its changes of buffers are undone.
        """
        before = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        with self._task.running(self._device):
            yield
        self._restore(before)

    def on_cpu(self) -> Reference:
        """A copy that computes on the CPU, and draws other random numbers."""
        other = copy.copy(self)
        other.model = copy.deepcopy(self.model).cpu()
        other._device = CPU
        return other

    def forget_disturbance(self) -> None:
        """Makes the model again with its constants as the task has them (perturb.py)."""

        def make() -> torch.nn.Module:
            _set_seed(self.init_seed, self._device)
            return build(self._module.Model, copy.deepcopy(self.init))

        with self._task.running(self._device):
            model = task_code.run("init", made_on, self._device, make)
        self.model = cast_model(model, self._precision)

    def settle_mode(self, inputs: Any, comparer: Comparer) -> bool:
        """Puts the model into eval mode if its forward is random. Returns whether it then repeats,
        within the tolerance, since some of a device's kernels add in any order.
        """
        if self._is_repeatable(inputs, comparer):
            return True
        self.model.eval()
        return self._is_repeatable(inputs, comparer)

    def _is_repeatable(self, inputs: Any, comparer: Comparer) -> bool:
        first, second = (self.run(inputs, seed).outputs for seed in (1, 2))
        return not comparer.failures(first, second, None)

    def _restore(self, before: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Undoes a forward's changes of buffers; returns the changed values."""
        changed = {}
        for name, buffer in self.model.named_buffers():
            old = before.get(name)
            if old is not None and old.shape == buffer.shape and not same_bytes(old, buffer):
                changed[name] = buffer.clone()
                buffer.copy_(old)
        return changed

    def _error_bounds(
        self, inputs: Any, outputs: Any, buffers: Mapping[str, torch.Tensor], seed: int
    ) -> ErrorBounds:
        """The differences of each output and changed buffer from the same program in double
        precision, and with its sums in another order; none if neither run fits or succeeds.
        """
        held = [*state_of(self.model).values(), *tensors_of(inputs)]
        is_on_cpu = self._device == CPU
        bytes_max = _ERROR_BOUND_BYTES_MAX_ON_CPU if is_on_cpu else _ERROR_BOUND_BYTES_MAX_ON_DEVICE
        if sum(8 * tensor.numel() for tensor in held) > bytes_max:
            return ErrorBounds()
        mine = [*tensors_of(outputs), *buffers.values()]
        others = [
            others
            for others in self._other_results(inputs, seed, buffers)
            if [other.shape for other in others] == [one.shape for one in mine]
        ]
        if not others:
            return ErrorBounds()
        bounds = map(error_bound_of, mine, zip(*others))
        return ErrorBounds(map_tensors(outputs, lambda _: next(bounds)), dict(zip(buffers, bounds)))

    def _other_results(
        self, inputs: Any, seed: int, buffers: Iterable[str]
    ) -> Iterator[list[torch.Tensor]]:
        # A run that fails, for example by a dtype that the program fixes, is left out.
        wide = map_tensors(_clone(inputs), _to_double)
        if (found := attempt(self._results_of, _doubled, wide, seed, buffers)) is not None:
            yield found
        for number in range(self._orders_max):
            if number >= self._num_orders:
                break
            order = SequentialSumMode(derive_seed(seed, "order", number), self._device)
            with sdpa_kernel(SDPBackend.MATH), order:
                found = attempt(self._results_of, copy.deepcopy, _clone(inputs), seed, buffers)
            if found is not None:
                yield found
            self._num_orders = self._orders_max if order.has_walks else int(order.has_sums)
        if self._tf32:
            yield from self._results_in_tf32(inputs, seed, buffers)

    def _results_in_tf32(
        self, inputs: Any, seed: int, buffers: Iterable[str] = ()
    ) -> Iterator[list[torch.Tensor]]:
        """The program's results in TF32; none if it has no fp32 products."""
        for number in range(TF32_RUNS):
            mode = Tf32Mode(derive_seed(seed, "tf32", number), self._device)
            with sdpa_kernel(SDPBackend.MATH), mode:
                found = attempt(self._results_of, copy.deepcopy, _clone(inputs), seed, buffers)
            if found is not None and mode.has_products:
                yield found

    def tf32_error_bound(self, inputs: Any, outputs: Any, seed: int) -> Any:
        """The error bounds of `outputs`, in fp32, if products round their factors to TF32; None
        without products.
        """
        mine = tensors_of(outputs)
        others = list(self._results_in_tf32(inputs, seed))
        shapes = [one.shape for one in mine]
        if not others or any([one.shape for one in run] != shapes for run in others):
            return None
        bounds = map(error_bound_of, mine, zip(*others))
        return map_tensors(outputs, lambda _: next(bounds))

    def _results_of(
        self,
        copied: Callable[[torch.nn.Module], torch.nn.Module],
        inputs: Any,
        seed: int,
        buffers: Iterable[str],
    ) -> list[torch.Tensor]:
        """The outputs of a copy of the model, and its changes of these buffers."""
        with self._task.running(self._device):
            model = task_code.run("init", copied, self.model)
            outputs = tensors_of(_forward(model, inputs, seed, self._device))
            left = dict(model.named_buffers())
            return [*outputs, *(left[name] for name in buffers if name in left)]


def _on_cpu(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: one.cpu() for name, one in tensors.items()}


def _is_same(before: torch.Tensor, now: torch.Tensor) -> bool:
    return (
        before.shape == now.shape and before.dtype == now.dtype and same_bytes(before, now.detach())
    )


def _forward(model: torch.nn.Module, inputs: Any, seed: int, device: torch.device) -> Any:
    _set_seed(seed, device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return task_code.forward(model, inputs)


def _set_seed(seed: int, device: torch.device) -> None:
    """Sets the seeds directly: PyTorch's function records a stack trace if CUDA is not
    initialised.
    """
    if device == CPU:
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def _lies_in(outputs: Any, inputs: Any) -> bool:
    """True if there are outputs, and all of them are views of inputs."""
    homes = set(map(_storage, tensors_of(inputs)))
    found = list(map(_storage, tensors_of(outputs)))
    return bool(found) and homes.issuperset(found)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _doubled(model: torch.nn.Module) -> torch.nn.Module:
    return copy.deepcopy(model).double()


def _to_double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _clone(value: Any) -> Any:
    return map_tensors(value, lambda tensor: tensor.detach().clone())


def is_finite(value: Any) -> bool:
    """True if all floating tensors of a value are finite."""
    tensors = [tensor for tensor in tensors_of(value) if tensor.is_floating_point()]
    return all(map(pieces.is_finite, tensors))


def failures(outcome: Outcome, got: Any, comparer: Comparer) -> list[Json]:
    """The failures of outputs (compare.py). An error bound only widens the allowance, so it is
    computed only if a check fails without it.
    """
    found = comparer.failures(outcome.outputs, got, None)
    if not found or outcome.error_bound is None:
        return found
    return comparer.failures(outcome.outputs, got, outcome.error_bound)


def buffer_failures(
    outcome: Outcome, name: str, got: torch.Tensor, comparer: Comparer
) -> list[Json]:
    """The failures of a buffer that the reference changes, as `failures` has them.

    A buffer that was left alone has no error bound. The values of an ill-conditioned one are not
    compared.
    """
    expected, path = outcome.buffers[name], f"buffer {name}"
    found = comparer.failures(expected, got, None, path)
    if not found or found[0]["problem"] != "value" or name not in outcome.error_bounds.buffers:
        return found
    if same_bytes(outcome.buffers_before[name], got):
        return found
    error_bound = BUFFER_ERROR_BOUND_FACTOR * outcome.error_bounds.buffers[name]
    if is_ill_conditioned(expected, error_bound):
        return []
    return comparer.failures(expected, got, error_bound, path)


def overwritten_inputs(
    outcome: Outcome, now: Sequence[torch.Tensor], comparer: Comparer
) -> list[str]:
    """The input tensors whose values differ from the reference's after the call."""
    names = []
    for number, (given, found) in enumerate(zip(tensors_of(outcome.inputs), now)):
        if number in outcome.left:
            wrong = bool(comparer.failures(outcome.left[number], found, None))
        else:
            wrong = not same_bytes(given, found)
        if wrong:
            names.append(f"input[{number}]")
    return names
