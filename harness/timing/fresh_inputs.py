# SPDX-License-Identifier: Apache-2.0
"""The judge's side of timing: inputs that nobody has seen before, and a look at what came of them.

For each burst the judge draws a set of inputs for every call into memory of its own. `reveal`
copies them to where one arm (the candidate's process, or a baseline's) can see them and empties the
L2 cache; the supervisor opens the gate right after. What the calls returned lies in an arena that
the judge maps too, or in the memory of the inputs, if the reference's do: `look` takes private
copies of the outputs that the supervisor chose after the burst, at once, so that work which is put
off is not in them; `verify` compares them.
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
from harness.timing.device_speed import FILL_BYTES
from harness.worker.output_places import Memories
from harness.worker.place import Place
from harness.judge.reference import Reference, derive_seed, failures, overwritten_inputs
from harness.worker.wire import Answer, Json, Question, Refusal

ALIGNMENT = 512
OUTPUTS_SLACK_BYTES = 1 << 20
PROBLEM_MAX = 2000  # Characters.


@dataclass
class _Arm:
    """What one timed process sees."""

    inputs: torch.Tensor | None = None
    arena: torch.Tensor | None = None


@dataclass
class FreshInputs:
    """Answers `plan`; then `inputs` and `arena` for each arm; then for each burst `draw`, `reveal`,
    `look` and `verify`.
    """

    place: Place
    reference: Reference
    comparer: Comparer
    seed: int
    arms: dict[str, _Arm] = field(default_factory=dict)
    private: torch.Tensor | None = None
    flush: torch.Tensor | None = None
    tree: Json = field(default_factory=dict)
    stride: int = 0  # From one call's slot to the next one's.
    outputs_bytes: int = 0
    in_place: bool = False  # Whether outputs may lie in the inputs, as the reference's do.
    drawings: dict[int, Callable[[], None]] = field(default_factory=dict)  # By number of calls.
    drawn: int = 0  # Which burst's inputs are in `private`,
    calls: int = 0  # and how many calls it has.
    taken: list[tuple[int, Any]] = field(default_factory=list)  # Calls and what they returned.
    malformed: str = ""

    def answer(self, operation: str, question: Question) -> Answer:
        operations: dict[str, Callable[[Json], Answer]] = {
            "plan": self._plan,
            "room": self._room,
            "inputs": self._inputs,
            "arena": self._arena,
            "draw": self._draw,
            "reveal": self._reveal,
            "look": self._look,
            "verify": self._verify,
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
        outputs = region.tensors_of(outcome.outputs)
        self.in_place = outcome.in_place
        self.outputs_bytes = sum(_padded(tensor.nbytes) for tensor in outputs)
        body = {
            "inputs_bytes": self.stride,
            "outputs_bytes": self.outputs_bytes,
            "operations": float(counter.get_total_flops() + sum(one.numel() for one in outputs)),
            "is_half": any(one.dtype in (torch.float16, torch.bfloat16) for one in outputs),
        }
        return Answer(body)

    def _room(self, _body: Json) -> Answer:
        """What the device has free, and what it has in all."""
        is_cuda = self.place.device.type == "cuda"
        free, total = torch.cuda.mem_get_info() if is_cuda else (1 << 30, 1 << 30)
        return Answer({"free_bytes": free, "total_bytes": total})

    def _inputs(self, body: Json) -> Answer:
        """Room for the inputs of so many calls, for one arm."""
        nbytes = self.stride * int(body["calls"])
        arm = self._arm(body)
        arm.inputs, descriptor = self.place.memory.reserve(nbytes)
        if self.private is None or self.private.numel() < nbytes:
            self.private = None
            self.drawings.clear()  # They write to it.
            # Zeros, since what lies between tensors is shown too.
            self.private = torch.zeros(nbytes, dtype=torch.uint8, device=self.place.device)
        for node in region.tensor_nodes(self.tree):
            node["region_bytes"] = arm.inputs.numel()
        body = {
            "inputs": self.tree,
            "stride": self.stride,
            "nbytes": arm.inputs.numel(),
            "in_place": self.in_place,
        }
        return Answer(body, [descriptor])

    def _arena(self, body: Json) -> Answer:
        """Memory for one arm's outputs."""
        arm = self._arm(body)
        arm.arena = None
        arm.arena, descriptor = self.place.memory.reserve(int(body["nbytes"]))
        return Answer({"nbytes": arm.arena.numel()}, [descriptor])

    def _draw(self, body: Json) -> Answer:
        """Inputs that the judge's seed and the burst's number determine."""
        self.drawn, self.calls = int(body["number"]), int(body["calls"])
        self.taken, self.malformed = [], ""
        if self.calls not in self.drawings:
            self.drawings[self.calls] = self._drawing(self.calls)
        torch.manual_seed(derive_seed(self.seed, "burst", self.drawn))
        self.drawings[self.calls]()
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

        if self.place.device.type != "cuda":
            return draw
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                draw()
        except Exception:
            torch.cuda.synchronize()
            return draw
        return graph.replay

    def _reveal(self, body: Json) -> Answer:
        inputs = self._arm(body).inputs
        if inputs is None:
            raise Refusal("protocol", "reveal before inputs")
        nbytes = self.stride * int(body["calls"])
        inputs[:nbytes].copy_(self._given()[:nbytes])
        if self.flush is None and self.place.device.type == "cuda":
            self.flush = torch.empty(FILL_BYTES, dtype=torch.uint8, device=self.place.device)
        if self.flush is not None:
            self.flush.fill_(self.drawn & 1)
        self.place.finish()
        return Answer()

    def _look(self, body: Json) -> Answer:
        """Copies the outputs of chosen calls, the last one's among them: [{"call", "place"}]."""
        arm = self._arm(body)
        if arm.inputs is None or arm.arena is None:
            raise Refusal("protocol", "look before inputs and arena")
        self.taken, self.malformed = [], ""
        try:
            for picked in body["picks"]:
                outputs = self._private_copy(body["forms"], picked["place"], arm)
                self.taken.append((int(picked["call"]), outputs))
        except Refusal as error:
            self.malformed = f"malformed outputs: {error}"[:PROBLEM_MAX]
        if max((call for call, _ in self.taken), default=-1) != self.calls - 1:
            self.malformed = self.malformed or "the outputs are not one for each call"
        self.place.finish()
        return Answer()

    def _verify(self, body: Json) -> Answer:
        """Compares what the last `look` took."""
        arm = self._arm(body)
        if arm.inputs is None or not (self.taken or self.malformed):
            raise Refusal("protocol", "verify before look")
        problem = self.malformed
        for call, outputs in self.taken:
            if not problem:
                found = self._problem(arm.inputs, call, outputs)
                problem = found and f"call {call}: {found}"[:PROBLEM_MAX]
        self.taken, self.malformed = [], ""
        return Answer({"passed": not problem, "problem": problem})

    def _private_copy(self, forms: Any, place: Any, arm: _Arm) -> Any:
        bytes_max = OUTPUTS_SLACK_BYTES + 2 * self.outputs_bytes
        seen = Memories(arm.arena, arm.inputs if self.in_place else None)
        outputs = output_places.read(forms, place, seen, bytes_max)
        return region.map_tensors(outputs, torch.clone)

    def _problem(self, shown: torch.Tensor, call: int, outputs: Any) -> str:
        """What is wrong with a call's outputs, or with what it left of its inputs."""
        seed = derive_seed(self.seed, "call", call)
        expected = self.reference.run(self._call(self._given(), call), seed)
        left = region.tensors_of(self._call(shown, call))
        problems = [
            f"{check['path']}: {check['problem']} {check['detail']}"
            for check in failures(expected, outputs, self.comparer)
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

    def _arm(self, body: Json) -> _Arm:
        return self.arms.setdefault(str(body["arm"]), _Arm())


def _padded(nbytes: int) -> int:
    return -(-max(1, nbytes) // ALIGNMENT) * ALIGNMENT
