# SPDX-License-Identifier: Apache-2.0
"""The judge's side of timing: inputs that nobody has seen before, and a look at what came of them.

For each burst the judge draws a set of inputs for every call into memory of its own. `reveal`
copies them to where one arm (the candidate's process, or a baseline's) can see them and empties the
L2 cache; the supervisor opens the gate right after. What the calls returned lies in an arena that
the judge maps too: `look` takes private copies of the outputs that the supervisor chose after the
burst, at once, so that work which is put off is not in them; `verify` compares them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from harness import distributions, region
from harness.compare import Comparer
from harness.place import Place
from harness.reference import Reference, changed_inputs, derive_seed
from harness.wire import Answer, Json, Question, Refusal

ALIGNMENT = 512
FLUSH_BYTES = 256 << 20  # More than twice any L2.


@dataclass
class _Arm:
    """What one timed process sees."""

    inputs: torch.Tensor | None = None
    arena: torch.Tensor | None = None


@dataclass
class FreshInputs:
    """Answers `plan`, then `inputs` and `arena` for each arm, then `draw`, `reveal`, `verify`."""

    place: Place
    reference: Reference
    comparer: Comparer
    seed: int
    arms: dict[str, _Arm] = field(default_factory=dict)
    private: torch.Tensor | None = None
    flush: torch.Tensor | None = None
    tree: Json = field(default_factory=dict)
    stride: int = 0
    drawings: dict[int, Callable[[], None]] = field(default_factory=dict)  # By number of calls.
    drawn: int = 0  # Which burst's inputs are in `private`.
    taken: list[tuple[int, Any]] = field(default_factory=list)  # Calls and what they returned.
    malformed: str = ""

    def answer(self, operation: str, question: Question) -> Answer:
        operations: dict[str, Callable[[Json], Answer]] = {
            "plan": self._plan,
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
        """What one call takes, and what the device has free."""
        inputs = self.reference.draw_inputs(derive_seed(self.seed, "plan"), distributions.NATIVE)
        with FlopCounterMode(display=False) as counter:
            outcome = self.reference.run(inputs, self.seed, yardstick=False)
        self._lay_out(inputs)
        outputs = sum(_padded(tensor) for tensor in region.tensors_of(outcome.outputs))
        free = torch.cuda.mem_get_info()[0] if self.place.device.type == "cuda" else 1 << 30
        made = region.tensors_of(outcome.outputs)
        body = {
            "inputs_bytes": self.stride,
            "outputs_bytes": outputs,
            "free_bytes": free,
            "operations": float(counter.get_total_flops() + sum(one.numel() for one in made)),
            "is_half": any(one.dtype in (torch.float16, torch.bfloat16) for one in made),
        }
        return Answer(body)

    def _inputs(self, body: Json) -> Answer:
        """Room for the inputs of so many calls, for one arm."""
        nbytes = self.stride * int(body["calls"])
        arm = self.arms.setdefault(str(body["arm"]), _Arm())
        arm.inputs, descriptor = self.place.memory.reserve(nbytes)
        if self.private is None or self.private.numel() < nbytes:
            self.private = None
            self.drawings.clear()  # They write to it.
            self.private = torch.empty(nbytes, dtype=torch.uint8, device=self.place.device)
        for node in region.tensor_nodes(self.tree):
            node["region_bytes"] = arm.inputs.numel()
        return Answer({"inputs": self.tree, "stride": self.stride}, [descriptor])

    def _arena(self, body: Json) -> Answer:
        """Memory for one arm's outputs."""
        arm = self.arms.setdefault(str(body["arm"]), _Arm())
        arm.arena = None
        arm.arena, descriptor = self.place.memory.reserve(int(body["nbytes"]))
        return Answer({"nbytes": arm.arena.numel()}, [descriptor])

    def _draw(self, body: Json) -> Answer:
        """Inputs that the judge's seed and the burst's number determine."""
        self.drawn, calls = int(body["number"]), int(body["calls"])
        if calls not in self.drawings:
            self.drawings[calls] = self._drawing(calls)
        torch.manual_seed(derive_seed(self.seed, "burst", self.drawn))
        self.drawings[calls]()
        self.place.finish()
        return Answer()

    def _drawing(self, calls: int) -> Callable[[], None]:
        """What draws the inputs of so many calls: as a CUDA graph where there is a device.

        Python takes a quarter of a millisecond to draw the inputs of one call, a graph some
        microseconds. A program that needs the host in between, such as one that makes its inputs
        there, cannot be captured.
        """

        def draw() -> None:
            memory, nodes = self._given(), region.tensor_nodes(self.tree)
            for call in range(calls):
                tensors = region.tensors_of(self.reference.draw_more())
                for node, tensor in zip(nodes, tensors, strict=True):
                    self._slot(memory, node, call).copy_(region.flat_bytes(tensor))

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
        inputs = self.arms[str(body["arm"])].inputs
        if inputs is None or self.private is None:
            raise Refusal("protocol", "reveal before inputs")
        nbytes = self.stride * int(body["calls"])
        inputs[:nbytes].copy_(self._given()[:nbytes])
        if self.flush is None and self.place.device.type == "cuda":
            self.flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=self.place.device)
        if self.flush is not None:
            self.flush.fill_(int(self.drawn) & 1)
        self.place.finish()
        return Answer()

    def _look(self, body: Json) -> Answer:
        """Copies the outputs of chosen calls: [{"call", "outputs"}]."""
        arena = self.arms[str(body["arm"])].arena
        if arena is None:
            raise Refusal("protocol", "look before arena")
        self.taken, self.malformed = [], ""
        try:
            for picked in body["picks"]:
                self.taken.append((int(picked["call"]), _private_copy(picked["outputs"], arena)))
        except Refusal as error:
            self.malformed = f"malformed outputs: {error}"[:300]
        self.place.finish()
        return Answer()

    def _verify(self, body: Json) -> Answer:
        """Compares what the last `look` took."""
        problem = self.malformed
        for call, outputs in self.taken:
            if not problem:
                found = self._problem(str(body["arm"]), call, outputs)
                problem = found and f"call {call}: {found}"
        self.taken = []
        return Answer({"passed": not problem, "problem": problem})

    def _problem(self, arm: str, call: int, outputs: Any) -> str:
        nodes = region.tensor_nodes(self.tree)
        views = [self._slot(self._given(), node, call) for node in nodes]
        given = region.unpack(self.tree, _Views(list(views)))
        expected = self.reference.run(given, derive_seed(self.seed, "call", call))
        shown = self.arms[arm].inputs
        for number, changed in enumerate(changed_inputs(expected.inputs, expected.inputs_after)):
            left = None if shown is None else self._slot(shown, nodes[number], call)
            if not changed and left is not None and not torch.equal(left, views[number]):
                return f"input[{number}] was overwritten"
        checks = self.comparer.failures(expected.outputs, outputs, expected.yardstick)
        return "; ".join(f"{one['path']}: {one['problem']} {one['detail']}" for one in checks)

    # ---- Slots ----------------------------------------------------------------------------------

    def _lay_out(self, inputs: list[Any]) -> None:
        """Where one call's tensors lie, from the beginning of its slot."""
        self.tree, descriptor = region.pack(inputs, self.place.memory)
        os.close(descriptor)
        end = 0
        for node in region.tensor_nodes(self.tree):
            node["offset"] = end
            end += -(-max(1, node["nbytes"]) // ALIGNMENT) * ALIGNMENT
        self.stride = max(end, ALIGNMENT)

    def _given(self) -> torch.Tensor:
        if self.private is None:
            raise Refusal("protocol", "draw before inputs")
        return self.private

    def _slot(self, memory: torch.Tensor, node: Json, call: int) -> torch.Tensor:
        start = call * self.stride + node["offset"]
        return memory[start : start + node["nbytes"]]


@dataclass
class _Views:
    """A region.Source that gives the bytes of a tree's tensors in their order."""

    views: list[torch.Tensor]

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int = 0) -> torch.Tensor:
        view = self.views.pop(0)
        while view.numel() != nbytes:  # Tensors without elements are not asked for.
            view = self.views.pop(0)
        return view


@dataclass
class _Arena:
    """A region.Source of memory that is mapped already."""

    memory: torch.Tensor

    def bytes_of(self, offset: int, nbytes: int, region_bytes: int = 0) -> torch.Tensor:
        if offset + nbytes > self.memory.numel():
            raise Refusal("protocol", "an output lies outside the arena")
        return self.memory[offset : offset + nbytes]


def _private_copy(tree: Any, arena: torch.Tensor) -> Any:
    return region.map_tensors(region.unpack(tree, _Arena(arena)), torch.clone)


def _padded(tensor: torch.Tensor) -> int:
    return -(-max(1, tensor.numel() * tensor.element_size()) // ALIGNMENT) * ALIGNMENT
