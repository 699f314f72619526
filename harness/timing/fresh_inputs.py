# SPDX-License-Identifier: Apache-2.0
"""The judge's side of timing: inputs that nobody has seen before, and what came of them.

For each batch the judge draws a set of inputs for every call into memory of its own, and some more.
`publish_inputs` copies them to where one process (the candidate's, or a baseline's) can see them
and empties the L2 cache; the supervisor opens the gate right after. `replace_inputs` publishes
those that are left in place of some calls' while the batch runs. What the calls returned lies in an
arena that the judge maps too, or in the memory of the inputs, if the reference's do:
`snapshot_outputs` copies the outputs that the supervisor chose after the batch, at once, so that
work which is put off is not in them; `verify` compares them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from harness.judge import distributions
from harness.worker import output_places, region
from harness.judge.compare import Comparer
from harness.worker.output_places import Memories
from harness.worker.place import Place
from harness.judge.reference import Reference, derive_seed, failures, overwritten_inputs
from harness.worker.wire import Answer, Json, Question, Refusal

ALIGNMENT = 512
OUTPUTS_SLACK_BYTES = 1 << 20
PROBLEM_MAX = 2000  # Characters.


@dataclass
class _Shared:
    """What one timed process sees."""

    inputs: torch.Tensor | None = None
    arena: torch.Tensor | None = None


@dataclass
class _Taken:
    """What a call returned."""

    call: int
    outputs: Any
    is_late: bool


@dataclass
class FreshInputs:
    """Answers `plan` and `room`; then `inputs` and `arena` for each process; then for each batch
    `generate_inputs`, `publish_inputs`, `replace_inputs` where some come late, `snapshot_outputs`
    and `verify`.
    """

    place: Place
    reference: Reference
    comparer: Comparer
    seed: int
    processes: dict[str, _Shared] = field(default_factory=dict)
    private: torch.Tensor | None = None
    flush: torch.Tensor | None = None
    tree: Json = field(default_factory=dict)
    stride: int = 0  # From one call's slot to the next one's.
    outputs_bytes: int = 0
    in_place: bool = False  # Whether outputs may lie in the inputs, as the reference's do.
    drawings: dict[int, Callable[[], None]] = field(default_factory=dict)  # By number of calls.
    drawn: int = 0  # Which batch's inputs are in `private`,
    calls: int = 0  # how many calls it has,
    late: int = 0  # and how many inputs are left, behind those of all calls.
    replaced: list[int] = field(default_factory=list)  # The calls that got these.
    taken: list[_Taken] = field(default_factory=list)
    malformed: str = ""

    def answer(self, operation: str, question: Question) -> Answer:
        if operation == "check":
            return self._check(question)
        operations: dict[str, Callable[[Json], Answer]] = {
            "plan": self._plan,
            "room": self._room,
            "inputs": self._inputs,
            "arena": self._arena,
            "generate_inputs": self._generate_inputs,
            "publish_inputs": self._publish_inputs,
            "replace_inputs": self._replace_inputs,
            "snapshot_outputs": self._snapshot_outputs,
            "verify": self._verify,
            "share": self._share,
        }
        if operation not in operations:
            raise Refusal("protocol", f"timing has no {operation!r}")
        return operations[operation](question.body)

    def _plan(self, _body: Json) -> Answer:
        """What one call takes."""
        inputs = self.reference.draw_inputs(derive_seed(self.seed, "plan"), distributions.NATIVE)
        with FlopCounterMode(display=False) as counter:
            outcome = self.reference.run(inputs, self.seed, with_doubt=False)
        self._lay_out(inputs)
        outputs = [*region.tensors_of(outcome.outputs), *outcome.written]
        self.in_place = outcome.in_place
        self.outputs_bytes = sum(_padded(tensor.nbytes) for tensor in outputs)
        body = {
            "inputs_bytes": self.stride,
            "outputs_bytes": self.outputs_bytes,
            "operations": float(counter.get_total_flops() + sum(one.numel() for one in outputs)),
            "written": [number for number, _ in outcome.written_numbers],
            "is_half": any(one.dtype in (torch.float16, torch.bfloat16) for one in outputs),
        }
        return Answer(body)

    def _room(self, _body: Json) -> Answer:
        """What the device has free, and what it has in all."""
        free, total = self.place.free_and_total_bytes()
        return Answer({"free_bytes": free, "total_bytes": total})

    def _inputs(self, body: Json) -> Answer:
        """Room for the inputs of so many calls, for one process, and for `late` more here."""
        shared = self._shared(body)
        shared.inputs, descriptor = self.place.memory.reserve(self.stride * body["calls"])
        nbytes = self.stride * (body["calls"] + body["late"])
        if self.private is None or self.private.numel() < nbytes:
            self.private = None
            self.drawings.clear()  # They write to it.
            # Zeros, since what lies between tensors is shown too.
            self.private = torch.zeros(nbytes, dtype=torch.uint8, device=self.place.device)
        for node in region.tensor_nodes(self.tree):
            node["region_bytes"] = shared.inputs.numel()
        body = {
            "inputs": self.tree,
            "stride": self.stride,
            "nbytes": shared.inputs.numel(),
            "in_place": self.in_place,
        }
        return Answer(body, [descriptor])

    def _arena(self, body: Json) -> Answer:
        """Memory for one process's outputs."""
        shared = self._shared(body)
        shared.arena = None
        shared.arena, descriptor = self.place.memory.reserve(body["nbytes"])
        return Answer({"nbytes": shared.arena.numel()}, [descriptor])

    def _generate_inputs(self, body: Json) -> Answer:
        """Inputs that the judge's seed and the batch's number determine."""
        self.drawn, self.calls, self.late = (body[k] for k in ("number", "calls", "late"))
        self.taken, self.malformed, self.replaced = [], "", []
        count = self.calls + self.late
        if count not in self.drawings:
            self.drawings[count] = self._drawing(count)
        torch.manual_seed(derive_seed(self.seed, "batch", self.drawn))
        self.drawings[count]()
        self.place.finish()
        return Answer()

    def _drawing(self, calls: int) -> Callable[[], None]:
        """What draws the inputs of so many calls: as a CUDA graph where there is a device.

        Python takes a quarter of a millisecond to draw the inputs of one call, a graph some
        microseconds. A program that needs the host in between, such as one that makes its inputs
        there, cannot be captured.
        """
        given = [region.tensors_of(self._call(self._given(), call)) for call in range(calls)]
        slots = [[region.flat_bytes(tensor) for tensor in tensors] for tensors in given]

        def draw() -> None:
            for slot in slots:
                tensors = region.tensors_of(self.reference.draw_more())
                for place, tensor in zip(slot, tensors, strict=True):
                    place.copy_(region.flat_bytes(tensor))

        return self.place.captured(draw)

    def _publish_inputs(self, body: Json) -> Answer:
        inputs = self._shared(body).inputs
        if inputs is None:
            raise Refusal("protocol", "publish_inputs before inputs")
        nbytes = self.stride * body["calls"]
        inputs[:nbytes].copy_(self._given()[:nbytes])
        if self.place.cache_bytes:
            if self.flush is None:
                nbytes = self.place.cache_bytes
                self.flush = torch.empty(nbytes, dtype=torch.uint8, device=self.place.device)
            self.flush.fill_(self.drawn & 1)
        self.place.finish()
        return Answer()

    def _replace_inputs(self, body: Json) -> Answer:
        """Publishes inputs that are left, in place of these calls'; the batch runs meanwhile."""
        inputs, calls = self._shared(body).inputs, body["calls"]
        if inputs is None or len(calls) > self.late:
            raise Refusal("protocol", "replace_inputs before inputs, or of too many calls")
        for source, call in enumerate(calls, self.calls):
            self._slot(inputs, call).copy_(self._slot(self._given(), source))
        self.place.finish()
        self.replaced = calls
        return Answer()

    def _snapshot_outputs(self, body: Json) -> Answer:
        """Copies the outputs of chosen calls, the last one's among them: [{"call", "place",
        "late"}], late if its inputs were surely replaced before its turn.
        """
        shared = self._shared(body)
        if shared.inputs is None or shared.arena is None:
            raise Refusal("protocol", "snapshot_outputs before inputs and arena")
        self.taken, self.malformed = [], ""
        try:
            for picked in body["picks"]:
                outputs = self._private_copy(body["forms"], picked["place"], shared)
                self.taken.append(_Taken(picked["call"], outputs, picked["late"]))
        except Refusal as error:
            self.malformed = f"malformed outputs: {error}"[:PROBLEM_MAX]
        if max((one.call for one in self.taken), default=-1) != self.calls - 1:
            self.malformed = self.malformed or "the outputs are not one for each call"
        self.place.finish()
        return Answer()

    def _verify(self, body: Json) -> Answer:
        """Compares what `snapshot_outputs` took. Of calls with late inputs it counts those whose
        outputs are not of these, which is no problem by itself.
        """
        inputs = self._shared(body).inputs
        if inputs is None or not (self.taken or self.malformed):
            raise Refusal("protocol", "verify before snapshot_outputs")
        problem, late, ignored = self.malformed, 0, 0
        for one in self.taken:
            if problem:
                break
            source = self.calls + self.replaced.index(one.call) if one.is_late else one.call
            found = self._problem(inputs, one, source)
            if one.is_late:
                late, ignored = late + 1, ignored + bool(found)
            else:
                problem = found and f"call {one.call}: {found}"[:PROBLEM_MAX]
        self.taken, self.malformed = [], ""
        return Answer({"problem": problem, "late": late, "ignored": ignored})

    # ---- For who is timed by calls (device/cuda/timed_batch.h) ----------------------------------

    def _share(self, body: Json) -> Answer:
        """Memory in which `generate_inputs` draws the inputs of so many calls from now on."""
        self.drawings.clear()
        self.private = None
        self.private, descriptor = self.place.memory.reserve(self.stride * body["calls"])
        self.private.zero_()
        for node in region.tensor_nodes(self.tree):
            node["region_bytes"] = self.private.numel()
        body = {"inputs": self.tree, "stride": self.stride, "nbytes": self.private.numel()}
        return Answer(body, [descriptor])

    def _check(self, question: Question) -> Answer:
        """What is wrong with one call's outputs; they come with what was written to inputs."""
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

    def _private_copy(self, forms: Any, place: Any, shared: _Shared) -> Any:
        bytes_max = OUTPUTS_SLACK_BYTES + 2 * self.outputs_bytes
        seen = Memories(shared.arena, shared.inputs if self.in_place else None)
        outputs = output_places.read(forms, place, seen, bytes_max)
        return region.map_tensors(outputs, torch.clone)

    def _problem(self, shown: torch.Tensor, one: _Taken, source: int) -> str:
        """What is wrong with a call's outputs on the inputs of that slot, or with what it left of
        them.
        """
        seed = derive_seed(self.seed, "call", one.call)
        expected = self.reference.run(self._call(self._given(), source), seed)
        left = region.tensors_of(self._call(shown, one.call))
        problems = [
            f"{check['path']}: {check['problem']} {check['detail']}"
            for check in failures(expected, one.outputs, self.comparer)
        ]
        problems += [
            f"{name} does not hold what the reference leaves in it"
            for name in overwritten_inputs(expected, left, self.comparer)
        ]
        return "; ".join(problems)

    # ---- Memory ---------------------------------------------------------------------------------

    def _lay_out(self, inputs: list[Any]) -> None:
        """Where one call's tensors lie, from the beginning of its slot."""
        self.tree, descriptor = region.pack(inputs, self.place.memory)
        os.close(descriptor)
        end = 0
        for node in region.tensor_nodes(self.tree):
            node["offset"] = end
            end += _padded(node["nbytes"])
        self.stride = max(end, ALIGNMENT)

    def _call(self, memory: torch.Tensor, call: int) -> Any:
        """One call's inputs as they lie in a memory with a slot for each call."""
        return region.unpack(region.shifted(self.tree, call * self.stride), Memories(memory))

    def _given(self) -> torch.Tensor:
        if self.private is None:
            raise Refusal("protocol", "inputs come first")
        return self.private

    def _slot(self, memory: torch.Tensor, call: int) -> torch.Tensor:
        return memory[call * self.stride : (call + 1) * self.stride]

    def _shared(self, body: Json) -> _Shared:
        return self.processes.setdefault(body["process"], _Shared())


def _padded(nbytes: int) -> int:
    return -(-max(1, nbytes) // ALIGNMENT) * ALIGNMENT
