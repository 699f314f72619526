# SPDX-License-Identifier: Apache-2.0
"""The judge's side of timing: new inputs for each call, and the check of the outputs.

For each batch the judge draws the inputs of every call into memory that it shares with the process
that times the calls (device/cuda/timed_batch.h): the candidate's device process, which shows each
call only its own inputs, or a compiled baseline. The eager baseline is the judge's own reference.
`check` compares the outputs of one call.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.judge import distributions
from harness.worker import region
from harness.judge.compare import Comparer
from harness.judge.cost import flop_counter
from harness.worker.place import Place
from harness.judge.reference import Reference, derive_seed, failures
from harness.timing.timed_calls import TimedCalls
from harness.worker.program import call
from harness.worker.wire import Answer, Json, Question, Refusal

ALIGNMENT = 512
OUTPUTS_SLACK_BYTES = 1 << 20
PROBLEM_MAX = 2000  # Characters.


class _Slots:
    """A memory as a region.Source."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.device = memory.device
        self._memory = memory

    def bytes_of(self, offset: int, nbytes: int, _region_bytes: int = 0) -> torch.Tensor:
        return self._memory[offset : offset + nbytes]


@dataclass
class FreshInputs:
    """Responds to `plan`; to `share` for memory; then for each batch to `generate_inputs`, to
    `calls` for the eager baseline, and to `check` for calls of the candidate.
    """

    place: Place
    reference: Reference
    comparer: Comparer
    seed: int
    timed: TimedCalls
    tf32: bool = False  # The eager baseline may use it.
    draws_again: bool = True  # The same seed gives the same inputs.
    private: torch.Tensor | None = None
    tree: Json = field(default_factory=dict)
    stride: int = 0  # The distance between the slots of two calls.
    outputs_bytes: int = 0
    drawings: dict[int, Callable[[], None]] = field(
        default_factory=dict
    )  # The drawing function for each number of calls.

    def answer(self, operation: str, question: Question) -> Answer:
        if operation == "check":
            return self._check(question)
        operations: dict[str, Callable[[Json], Answer]] = {
            "plan": self._plan,
            "generate_inputs": self._generate_inputs,
            "share": self._share,
            "calls": self._time_calls,
            "memory": self._measure_memory,
        }
        if operation not in operations:
            raise Refusal("protocol", f"timing has no {operation!r}")
        return operations[operation](question.body)

    def _plan(self, _body: Json) -> Answer:
        """The sizes of one call's inputs and outputs."""
        inputs = self.reference.draw_inputs(derive_seed(self.seed, "plan"), distributions.NATIVE)
        with flop_counter() as counter:
            outcome = self.reference.run(inputs, self.seed)
        self._lay_out(inputs)
        outputs = [*region.tensors_of(outcome.outputs), *outcome.written]
        self.outputs_bytes = sum(_padded(tensor.nbytes) for tensor in outputs)
        body = {
            "inputs_bytes": self.stride,
            "outputs_bytes": self.outputs_bytes,
            "operations": float(counter.get_total_flops() + sum(one.numel() for one in outputs)),
            "written": sorted(outcome.left),
            "draws_again": self.draws_again,
            "is_half": any(one.dtype in (torch.float16, torch.bfloat16) for one in outputs),
        }
        return Answer(body)

    def _generate_inputs(self, body: Json) -> Answer:
        """Inputs that the judge's seed and the batch's number determine."""
        calls = body["calls"]
        if calls not in self.drawings:
            self.drawings[calls] = self._drawing(calls)
        torch.manual_seed(derive_seed(self.seed, "batch", body["number"]))
        self.drawings[calls]()
        self.place.finish()
        return Answer()

    def _drawing(self, calls: int) -> Callable[[], None]:
        """The function that draws the inputs of `calls` calls: a CUDA graph if there is a device.

        Python takes a quarter of a millisecond to draw the inputs of one call, a graph a few
        microseconds. A program that makes its inputs on the host cannot be captured.
        """
        given = [region.tensors_of(self._call(self._given(), call)) for call in range(calls)]
        slots = [[region.memory_of(tensor) for tensor in tensors] for tensors in given]

        def draw() -> None:
            for slot in slots:
                tensors = region.tensors_of(self.reference.draw_more())
                for place, tensor in zip(slot, tensors, strict=True):
                    place.copy_(region.memory_of(tensor))

        return self.place.captured(draw)

    def _share(self, body: Json) -> Answer:
        """Shares the memory in which `generate_inputs` draws the inputs of the calls from now
        on.
        """
        self.drawings.clear()
        self.private = None
        self.private, descriptor = self.place.memory.reserve(self.stride * body["calls"])
        self.private.zero_()
        for node in region.tensor_nodes(self.tree):
            node["region_bytes"] = self.private.numel()
        body = {"inputs": self.tree, "stride": self.stride, "nbytes": self.private.numel()}
        return Answer(body, [descriptor])

    def _time_calls(self, body: Json) -> Answer:
        """The eager baseline's calls, on the inputs of the last batch."""

        def inputs_of(number: int) -> Any:
            return self._call(self._given(), number)

        gated = body["is_gated"]
        with self._as_baseline():
            model = self.reference.model
            return Answer(self.timed.time(model, inputs_of, body["calls"], is_gated=gated))

    def _measure_memory(self, _body: Json) -> Answer:
        """The memory of a call, as a device process counts that of a candidate."""
        inputs = region.map_tensors(self._call(self._given(), 0), torch.clone)
        with self._as_baseline():
            peak = self.place.peak_bytes(lambda: call(self.reference.model, inputs))
        return Answer({"memory_bytes": peak})

    @contextlib.contextmanager
    def _as_baseline(self) -> Iterator[None]:
        """A context for timed calls, which leave the reference's buffers unchanged."""
        if self.tf32:
            self.place.set_tf32(True)
        try:
            with self.reference.as_candidate():
                yield
        finally:
            if self.tf32:
                self.place.set_tf32(False)

    def _check(self, question: Question) -> Answer:
        """The failures of one call's outputs and of the inputs that it wrote."""
        call = question.body["call"]
        seed = derive_seed(self.seed, "call", call)
        bytes_max = OUTPUTS_SLACK_BYTES + 2 * self.outputs_bytes
        try:
            source = self.place.memory.snapshot(question.descriptors[0], bytes_max)
            returned = region.unpack(question.body["outputs"], source, bytes_max)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise Refusal("protocol", "outputs come with what was written to inputs")
        except Refusal as error:
            return Answer({"problem": f"malformed outputs: {error}"[:PROBLEM_MAX]})
        expected = self.reference.run(self._call(self._given(), call), seed)
        checks = failures(expected, returned[0], self.comparer)
        checks += self.comparer.failures(expected.written, returned[1], None, "written input")
        problems = [f"{one['path']}: {one['problem']} {one['detail']}" for one in checks]
        return Answer({"problem": "; ".join(problems)[:PROBLEM_MAX]})

    # ---- Memory ---------------------------------------------------------------------------------

    def _lay_out(self, inputs: list[Any]) -> None:
        """The offsets of one call's tensors in its slot."""
        self.tree, descriptor = region.pack(inputs, self.place.memory)
        os.close(descriptor)
        end = 0
        for node, tensor in zip(region.tensor_nodes(self.tree), region.tensors_of(inputs)):
            node["offset"] = end
            end += _padded(region.memory_of(tensor).nbytes)
        self.stride = max(end, ALIGNMENT)

    def _call(self, memory: torch.Tensor, call: int) -> Any:
        """One call's inputs as views of a memory with a slot for each call."""
        return region.unpack(region.shifted(self.tree, call * self.stride), _Slots(memory))

    def _given(self) -> torch.Tensor:
        if self.private is None:
            raise Refusal("protocol", "inputs come first")
        return self.private


def _padded(nbytes: int) -> int:
    return region.round_up(max(1, nbytes), ALIGNMENT)
