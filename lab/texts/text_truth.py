#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the texts of `musacoder forge` state against the code of the same row.

  lab/texts/text_truth.py rows/sft.jsonl --texts 500   # Exit code 1: a statement is false.
  lab/texts/text_truth.py rows/sft.jsonl --show 20     # Lines that are false or unchecked, too.

The grammar gives the slots of a line (data/forge/sentences.json); whether they hold is decided here
from the row alone: the module of the task gives shapes, and the threads of the kernels run in
Python (kernel_trace.py). It needs PyTorch. The last line is the bits a character by `xz -9`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import text_variants  # noqa: E402
from kernel_translation import NotUnderstood
from kernel_trace import Program, Trace, program_of  # noqa: E402
from text_plans import PLANS, Found, up  # noqa: E402

Slots = dict[str, str]
ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"```python\n(.*?)```\n?", re.DOTALL)
NUMBERS = {
    "count",
    "k",
    "kernels",
    "threads",
    "warps",
    "offset",
    "blocks",
    "idle",
    "full",
    "block",
    "rest",
    "read",
    "written",
    "bytes",
    "needed",
    "flops",
    "ways",
    "stores",
    "loads",
    "percent",
    "sectors",
    "shared",
    "registers",
    "ours",
    "theirs",
    "n",
    "m",
    "place",
    "thread",
    "all",
    "row",
    "line",
    "barriers",
    "launches",
    "saved",
    "size",
    "value",
    "rate",
}


def grammar_of(path: Path) -> dict[str, list[re.Pattern[str]]]:
    """The forms of each sentence, as patterns with a group for each slot."""
    sentences: dict[str, list[str]] = json.loads(path.read_text())
    return {name: [pattern_of(form) for form in forms] for name, forms in sentences.items()}


def pattern_of(form: str) -> re.Pattern[str]:
    seen: set[str] = set()

    def group(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{r'[0-9]+' if name in NUMBERS else '.*?'})"

    parts = re.split(r"(\{\w+\})", form)
    return re.compile(
        "".join(
            re.sub(r"\{(\w+)\}", group, p) if p.startswith("{") else re.escape(p) for p in parts
        )
    )


def numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"-?\d+", text)]


def code_blocks(messages: list[dict[str, str]]) -> list[str]:
    return [code for message in messages for code in FENCE.findall(message["content"])]


def text_of(row: dict[str, Any]) -> str:
    """The last message without code."""
    content = row["messages"][-1]["content"]
    is_object = row["kind"] == "variants"
    return FENCE.sub("", "".join(text_variants.texts_of(content)) if is_object else content)


class Unknown(Exception):
    """A statement that the row does not decide."""


class Truth:
    """The facts about a row."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.messages = row["messages"]
        blocks = code_blocks(self.messages)
        self.reference = blocks[0] if blocks else ""
        self.text = FENCE.sub("", self.messages[-1]["content"])
        given = code_blocks(self.messages[:-1])
        # A review or a diagnosis is about the answer before it, another text about its own answer.
        self.failed_answer = given[-1] if len(given) > 1 else ""
        answers = [code for code in blocks[1:] if "load_inline" in code]
        self.answer = answers[-1] if answers else ""
        self.made: Program | None = None
        self.traces: dict[Any, Trace] = {}

    def program(self) -> Program:
        if self.made is None:
            if not self.answer:
                raise Unknown
            try:
                self.made = program_of(self.reference, self.answer)
            except NotUnderstood as error:
                raise Unknown(str(error)) from error
        return self.made

    def trace(self, launch: int, block: tuple[int, ...], thread: tuple[int, ...]) -> Trace:
        key = (launch, block, thread)
        if key not in self.traces:
            try:
                self.traces[key] = self.program().run_thread(launch, block, thread)
            except NotUnderstood as error:
                raise Unknown(str(error)) from error
        return self.traces[key]

    # ---- Parts: a kernel of the plan may be two launches, the second of which ends with _finish

    def launch_of(self, k: str) -> int:
        firsts = [
            i for i, one in enumerate(self.program().launches) if not one.kernel.endswith("_finish")
        ]
        if not 1 <= int(k) <= len(firsts):
            raise AssertionError("there is no such kernel")
        return firsts[int(k) - 1]

    def geometry(self, k: str) -> tuple[int, int]:
        launch = self.program().launches[self.launch_of(k)]
        return math.prod(launch.grid), math.prod(launch.block)

    def tensors(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for launch in self.program().launches:
            for argument in launch.arguments:
                if hasattr(argument, "shape"):
                    found[argument.name] = argument
        return found

    # ---- Sizes and counts of the code

    def size(self, k: str, *names: str) -> int:
        """The host's first variable of these names at the launch of kernel k."""
        variables = self.program().host_variables[self.launch_of(k)]
        launch = self.program().launches[self.launch_of(k)]
        for (_, name), value in zip(self.program().parameters[launch.kernel], launch.arguments):
            if isinstance(value, int):
                variables = {**variables, name: value}
        for name in names:
            if name in variables:
                return variables[name]
        raise Unknown

    def body(self, k: str) -> str:
        return self.program().texts[self.program().launches[self.launch_of(k)].kernel]

    def output(self, k: str) -> Any:
        launch = self.launch_of(k)
        number = launch + (self.is_split(launch))
        return [one for one in self.program().launches[number].arguments if hasattr(one, "shape")][
            -1
        ]

    def is_split(self, launch: int) -> bool:
        launches = self.program().launches
        return launch + 1 < len(launches) and launches[launch + 1].kernel.endswith("_finish")

    def facts(self, k: str) -> dict[str, int]:
        """The variables of the plans' formulas."""
        found = {"n": self.size(k, "rows", "n"), "batch": 1, "m": 1}
        body = self.body(k)
        for name, variables in (("m", ("cols", "m")), ("depth", ("depth",)), ("batch", ("batch",))):
            try:
                found[name] = self.size(k, *variables)
            except Unknown:
                continue
        if "blockIdx.z" not in body:
            found["batch"] = 1
        found["last"] = (self.output(k).shape or [1])[-1]
        plain = re.sub(r"for \(int \w+ = [^;]*;", "", body)
        identity = r"(?:-?INFINITY|0\.0f|1\.0f|INT(?:64)?_M(?:IN|AX)|0|1)"
        found["passes"] = max(1, len(re.findall(rf"\b(?!count\b)\w+ = {identity}(?=[,;])", plain)))
        return found

    def busy(self, k: str) -> set[int]:
        """Threads with a load or a store, and threads with only a store."""
        number = self.launch_of(k)
        launch = self.program().launches[number]
        blocks = places(launch.grid)
        threads = places(launch.block)
        if len(blocks) * len(threads) > 20000:
            ends = [blocks[0], blocks[-1]]
            if len(launch.grid) > 1:
                raise Unknown
        else:
            ends = blocks
        counts = []
        for block in ends:
            traces = [self.trace(number, block, thread) for thread in threads]
            counts.append(
                (
                    sum(bool(t.loads or t.stores) for t in traces),
                    sum(bool(t.stores) for t in traces),
                )
            )
        if ends is blocks:
            return {sum(a for a, _ in counts), sum(b for _, b in counts)}
        return {counts[0][i] * (len(blocks) - 1) + counts[-1][i] for i in (0, 1)}

    def loaded(self, k: str) -> Counter[str]:
        """Bytes of each tensor that all threads of the first launch load."""
        number = self.launch_of(k)
        one = self.program().launches[number]
        if math.prod(one.grid) * math.prod(one.block) > 40000:
            raise Unknown
        found: Counter[str] = Counter()
        for block in places(one.grid):
            for thread in places(one.block):
                for name, _, size in self.trace(number, block, thread).loads:
                    found[name] += size
                if found.total() > 20_000_000:
                    raise Unknown
        return found

    def first_sectors(self, k: str) -> set[int]:
        """The sectors of the first load of the first warp, by tensor."""
        number = self.launch_of(k)
        launch = self.program().launches[number]
        lanes = [thread for thread in sorted(places(launch.block), key=lambda one: one[::-1])][:32]
        touched: dict[str, set[int]] = {}
        for thread in lanes:
            seen = set()
            for name, place, size in self.trace(number, (0,) * len(launch.grid), thread).loads:
                if name not in seen:
                    seen.add(name)
                    touched.setdefault(name, set()).add(place * size // 32)
        return {len(found) for found in touched.values()}

    # ---- Plans

    def plan(self, text: str, k: str) -> Found:
        text = text[0].lower() + text[1:]
        for pattern, formulas in PLANS.items():
            if match := re.fullmatch(pattern, text):
                values = {name: int(value) for name, value in match.groupdict().items()}
                facts = {**self.facts(k), **values}
                if "depth" in facts and "rows" in formulas and "scans" not in formulas:
                    facts["n"] *= facts["m"] * facts["batch"]  # An output is a row.
                    facts["m"] = facts["depth"]
                return Found(formulas, facts)
        raise AssertionError("a plan that is not known")

    def formula(self, s: Slots) -> bool | None:
        if s["op"] not in self.row["operators"]:
            return None  # The line may be another sentence.
        numbers_of = re.findall(r"\d+\.\d+", s["formula"])
        if not numbers_of:
            raise Unknown
        source = self.answer
        return all(
            re.search(rf"(?<![\d.]){re.escape(number)}0*f?", source) for number in numbers_of
        )

    def fusion(self, s: Slots) -> bool:
        elements = [int(one) for one in re.findall(r"\((\d+)\)", s["values"])]
        sizes = {one.element_bytes for one in self.tensors().values()}
        return (
            int(s["count"]) == self.row["depth"]
            and int(s["kernels"]) == len(self.program().launches)
            and any(2 * size * sum(elements) == int(s["bytes"]) for size in sizes)
            and set(elements) <= self.sizes_of_reference()
        )

    def sizes_of_reference(self) -> set[int]:
        """Elements of every tensor that PyTorch makes in the task's forward."""
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        found: set[int] = set()

        class Recorder(TorchDispatchMode):
            def __torch_dispatch__(
                self, function: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                result = function(*args, **(kwargs or {}))
                for one in result if isinstance(result, (tuple, list)) else (result,):
                    if isinstance(one, torch.Tensor):
                        found.add(one.numel())
                return result

        task: dict[str, Any] = {}
        exec(self.reference, task)  # noqa: S102
        with torch.device("meta"):
            model, inputs = task["Model"](*task["get_init_inputs"]()), task["get_inputs"]()
            try:
                with Recorder(), torch.no_grad():
                    model(*inputs)
            except RuntimeError as error:
                raise Unknown(str(error)) from error
        return found | {one.numel() for one in inputs}

    def separate(self, s: Slots) -> bool:
        return int(s["kernels"]) == len(self.program().launches)

    def kernel(self, s: Slots) -> bool:
        plan = self.plan(s["plan"], s["k"])
        launch = self.program().launches[self.launch_of(s["k"])]
        geometry = (int(s["blocks"]), int(s["threads"]))
        return (
            s["kernel"] == launch.kernel
            and geometry == self.geometry(s["k"])
            and geometry == self.geometry_of(plan, geometry[1])
            and set(s["chain"].split(", ")) <= set(self.row["operators"])
        )

    @staticmethod
    def geometry_of(plan: Found, threads: int) -> tuple[int, int]:
        """The geometry at a block size that a plan's words leave open."""
        if not plan.has("threads"):
            return up(plan.facts["n"], threads), threads
        return plan("blocks"), plan("threads")

    def run(self, s: Slots) -> bool:
        return self.size(s["k"], s["name"]) == int(s["value"])

    def spare(self, s: Slots) -> bool:
        blocks, threads = self.geometry(s["k"])
        return (
            blocks * threads == int(s["all"])
            and int(s["all"]) - int(s["busy"]) == int(s["idle"])
            and s["check"] in self.body(s["k"])
            and int(s["busy"]) in self.busy(s["k"])
        )

    def exact(self, s: Slots) -> bool:
        """No thread of the first and the last block has less to store than others, either."""
        number = self.launch_of(s["k"])
        launch = self.program().launches[number]
        blocks = places(launch.grid)
        stores = {
            len(self.trace(number, block, thread).stores)
            for block in {blocks[0], blocks[-1]}
            for thread in places(launch.block)
        } - {0}
        if len(stores) > 1 and "tid" not in self.body(s["k"]) and "lane" not in self.body(s["k"]):
            return False
        return self.spare({**s, "busy": s["all"], "idle": "0"})

    def example(self, s: Slots) -> bool:
        number = self.launch_of(s["k"])
        launch = self.program().launches[number]
        if len(launch.grid) > 1 or len(launch.block) > 1:
            return False
        if int(s["block"]) >= launch.grid[0] or int(s["thread"]) >= launch.block[0]:
            return False
        trace = self.trace(number, (int(s["block"]),), (int(s["thread"]),))
        return trace.variables.get(s["name"]) == int(s["place"])

    def barriers(self, s: Slots) -> bool:
        return self.barriers_of(s["k"]) == int(s["barriers"])

    def barriers_of(self, k: str) -> int:
        number = self.launch_of(k)
        one = self.program().launches[number]
        first, last = (0,) * len(one.block), tuple(extent - 1 for extent in one.block)
        counts = {
            self.trace(number, (0,) * len(one.grid), thread).barriers for thread in (first, last)
        }
        if len(counts) != 1:
            raise AssertionError("threads of a block meet different barriers")
        return counts.pop()

    def shared_bytes(self, s: Slots) -> bool:
        number = self.launch_of(s["k"])
        one = self.program().launches[number]
        trace = self.trace(number, (0,) * len(one.grid), (0,) * len(one.block))
        size = 8 if re.search(r"__shared__ (?:int64_t|long)", self.body(s["k"])) else 4
        return sum(trace.shared.values()) * size + one.dynamic == int(s["bytes"])

    def reads(self, s: Slots) -> bool:
        number = self.launch_of(s["k"])
        one = self.program().launches[number]
        trace = self.trace(number, (0,) * len(one.grid), (0,) * len(one.block))
        counts = Counter(place for name, place, _ in trace.loads if name == s["name"])
        return set(counts.values()) == {int(s["count"])}

    def compared(self, s: Slots, what: str, ours: set[int]) -> bool:
        plan = self.plan(s["other"], s["k"])
        return int(s["ours"]) in ours and plan(what) == int(s["theirs"])

    def less_barriers(self, s: Slots) -> bool:
        return self.compared(s, "barriers", {self.barriers_of(s["k"])})

    price_barriers = less_barriers

    def less_launches(self, s: Slots) -> bool:
        plan = self.plan(s["other"], s["k"])
        ours = 1 + self.is_split(self.launch_of(s["k"]))
        return (ours, plan("launches", "1")) == (int(s["ours"]), int(s["theirs"]))

    def more_busy(self, s: Slots) -> bool:
        return self.compared(s, "busy", self.busy(s["k"]))

    price_busy = more_busy

    def fewer_blocks(self, s: Slots) -> bool:
        plan = self.plan(s["other"], s["k"])
        ours, theirs = int(s["ours"]), int(s["theirs"])
        sizes = (32, 64, 128, 256, 512)  # Block sizes if the words do not determine it.
        is_true = theirs in {self.geometry_of(plan, size)[0] for size in sizes}
        return is_true and ours == self.geometry(s["k"])[0]

    def less_sectors(self, s: Slots) -> bool:
        plan = self.plan(s["other"], s["k"])
        n, m = plan.facts["n"], plan.facts["m"]
        found = []
        for lane in range(32):
            row, place = plan("lane", lane=lane)
            if plan.has("rows") and row < n and place < m:
                found.append(row * m + place)
            elif not plan.has("rows") and place < n:
                found.append(place)
        sizes = {one.element_bytes for one in self.tensors().values()}
        theirs = {len({place * size // 32 for place in found}) for size in sizes}
        return int(s["ours"]) in self.first_sectors(s["k"]) and int(s["theirs"]) in theirs

    def less_loaded(self, s: Slots) -> bool:
        loaded = self.loaded(s["k"])
        ours, theirs = int(s["ours"]), int(s["theirs"])
        plan = self.plan(s["other"], s["k"])
        n, m = plan.facts["n"], plan.facts["m"]
        size = {one.name: one.element_bytes for one in self.tensors().values()}
        pairs = [a + b for one, a in loaded.items() for other, b in loaded.items() if one < other]
        if "depth" in plan.facts and ours in (*pairs, *loaded.values()):  # Both factors are read.
            one = next(iter(size.values()))
            return bool(theirs == plan("loads", "2 * n * m") * one)
        keeps = int(self.output(s["k"]).numel() == n * m)
        reads = plan("reads", "passes + keeps", keeps=keeps)
        names = [name for name, total in loaded.items() if total == ours]
        return any(theirs == reads * n * m * size[name] for name in names)

    def largest(self, s: Slots) -> bool:
        return int(s["count"]) == max(one.numel() for one in self.tensors().values())

    def types(self, s: Slots) -> bool:
        element = {"float16": "__half", "bfloat16": "bfloat16"}[s["type"]]
        return element in self.answer and s["sums"] == "float32" and "float " in self.answer

    def strides(self, s: Slots) -> bool:
        given = {one.name: one for one in self.program().given}
        strides, index = numbers(s["strides"]), numbers(s["index"])
        one = given[s["name"]]
        return (
            strides == one.strides
            and all(0 <= a < b for a, b in zip(index, one.shape))
            and sum(a * b for a, b in zip(strides, index)) == int(s["offset"])
        )

    # ---- Reviews, diagnoses and ports

    def no_bug(self, s: Slots) -> bool:
        return self.row["provenance"]["mutations"] == []

    def failed(self, s: Slots) -> bool:
        detail = s["effect"].split(": ", 1)[-1].removesuffix(" is changed")
        asked = self.messages[-2]["content"].replace("'", '"')
        if "Result:" not in asked:
            raise Unknown
        return detail.replace("'", '"') in asked

    def stream(self, s: Slots) -> bool:
        count = self.answer.count("<<<")
        checks = len(re.findall(r"C10_\w+_KERNEL_LAUNCH_CHECK\(\);", self.answer))
        return count == self.answer.count(", stream>>>") == checks == int(s["count"])

    def occupancy(self, s: Slots) -> bool:
        asked = self.asked("ask_occupancy")
        return self.has_occupancy(s, int(asked["registers"]), int(asked["shared"]))

    @staticmethod
    def has_occupancy(s: Slots, registers: int, shared: int) -> bool:
        """sm_90: 64 warps, 32 blocks, 65,536 registers in units of 256 a warp, 228 KiB less 1."""
        threads = int(s["threads"])
        warps = math.ceil(threads / 32)
        of_registers = 65536 // (math.ceil(registers * 32 / 256) * 256) // warps
        of_shared = 233472 // (math.ceil((shared + 1024) / 128) * 128)
        blocks = min(64 // warps, 32, of_registers, of_shared)
        return blocks == int(s["blocks"]) and rounded(100 * blocks * warps, 64) == int(s["percent"])

    # ---- Questions

    grammar: dict[str, list[re.Pattern[str]]] = {}

    def asked(self, sentence: str) -> Slots:
        line = self.messages[-2]["content"].strip()
        for form in self.grammar[sentence]:
            if match := form.fullmatch(line):
                return match.groupdict()
        raise Unknown

    def tell_grid(self, s: Slots) -> bool:
        asked = self.asked("ask_grid")
        blocks = -(-int(asked["n"]) // int(asked["threads"]))
        idle = blocks * int(asked["threads"]) - int(asked["n"])
        return (blocks, idle) == (int(s["blocks"]), int(s["idle"]))

    def tell_sectors(self, s: Slots) -> bool:
        stride = int(self.asked("ask_sectors")["stride"])
        count = len({lane * stride * 4 // 32 for lane in range(32)})
        return count == int(s["sectors"]) and rounded(100 * 128, count * 32) == int(s["percent"])

    def tell_banks(self, s: Slots) -> bool:
        stride = int(self.asked("ask_banks")["stride"])
        return int(s["ways"]) == max(Counter(lane * stride % 32 for lane in range(32)).values())

    def tell_offset(self, s: Slots) -> bool:
        asked = self.asked("ask_offset")
        flat = 0
        for size, index in zip(numbers(asked["sizes"]), numbers(asked["index"])):
            flat = flat * size + index
        return flat == int(s["offset"])

    def tell_time(self, s: Slots) -> bool:
        asked = self.asked("ask_time")
        exact = int(asked["bytes"]) / (int(asked["rate"]) * 1000)
        return abs(float(s["us"]) - exact) <= 0.005001

    def tell_convolution(self, s: Slots) -> bool:
        size, kernel, stride, padding, dilation = (
            int(s[name]) for name in ("size", "kernel", "stride", "padding", "dilation")
        )
        places = range(-padding, size + padding - dilation * (kernel - 1), stride)
        return len(places) == int(s["out"])

    def tell_overflow(self, s: Slots) -> bool:
        count = math.prod(numbers(self.asked("ask_overflow")["sizes"]))
        return count == int(s["count"]) and (count > 2**31 - 1) == (s["type"] == "int64_t")


def rounded(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def places(extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for extent in extents:
        found = [(*one, i) for one in found for i in range(extent)]
    return found


def verdict_of(line: str, truth: Truth) -> tuple[str, list[str]]:
    """ "true", "false", "unchecked" or "no sentence", and the sentences that the line may be."""
    found: list[bool] = []
    names: list[str] = []
    for name, forms in truth.grammar.items():
        for form in forms:
            match = form.fullmatch(line)
            if match is None:
                continue
            check = getattr(truth, name, None)
            try:
                said = check(match.groupdict()) if check is not None else None
            except Unknown as error:
                names.append(f"{name} ({error})")
                continue
            except (AssertionError, ValueError) as error:
                names.append(f"{name} ({error})")
                found.append(False)
                continue
            if said is None and name == "formula":
                continue
            names.append(name)
            found += [] if said is None else [said]
    if not names:
        return "no sentence", names
    if not found:
        return "unchecked", names
    return ("true" if any(found) else "false"), names


def truths_of(row: dict[str, Any]) -> list[Truth]:
    """One for each message of the assistant, or each variant in it."""
    if row["kind"] == "variants":
        *given, answer = row["messages"]
        return [
            Truth({**row, "messages": [*given, {**answer, "content": one}]})
            for one in text_variants.texts_of(answer["content"])
        ]
    found = []
    for i, message in enumerate(row["messages"]):
        if message["role"] == "assistant":
            found.append(Truth({**row, "messages": row["messages"][: i + 1]}))
    return found


def report_line(line: str, code: str) -> bool | None:
    """ "Line 8: text" of a review or a diagnosis; None of other lines."""
    match = re.fullmatch(r"(?:Line|In line) (\d+): (.*)", line)
    if match is None:
        return None
    lines = code.split("\n")
    number = int(match.group(1))
    return number <= len(lines) and lines[number - 1].strip() == match.group(2).strip()


def other_line(line: str, truth: Truth) -> bool | None:
    """Lines of reviews, diagnoses, ports and variants that are no sentences, else None."""
    if (is_true := text_variants.is_true(line, truth.answer)) is not None:
        return is_true
    if line.startswith(("Line ", "In line ")):
        return report_line(line, truth.failed_answer)
    if match := re.fullmatch(r"Bugs: (\d+)", line):
        faults = len(re.findall(r"Fault: ", truth.text))
        return int(match.group(1)) == faults == len(truth.row["provenance"]["mutations"])
    if match := re.fullmatch(r"Fault: (.+)", line):
        return match.group(1).replace(" ", "_") in truth.row["provenance"]["mutations"]
    if match := re.fullmatch(r"(?:Fix: Use|Fix: Round up:) (.+?)\.?", line):
        return match.group(1) in truth.answer
    if match := re.fullmatch(r"(\S+) -> (\S+)", line):
        return (
            match.group(1) in truth.failed_answer + truth.reference
            and match.group(2) in truth.answer
        )
    return None


def lines_of(text: str) -> list[str]:
    cleaned = (re.sub(r"^(\d+\. +|- +)", "", line.strip()) for line in text.split("\n"))
    return [line for line in cleaned if line and line not in ("<think>", "</think>")]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Conversations of the forge.  Raises OSError, or ValueError with the line that is none."""
    rows = []
    for number, line in enumerate(path.open(), 1):
        try:
            row = json.loads(line)
            row["kind"], row["messages"][-1]["content"]
        except (ValueError, KeyError, IndexError, TypeError):
            raise ValueError(
                f"{path}:{number}: not a conversation of the forge; give its sft.jsonl"
            ) from None
        rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--show", type=int, default=0, help="how many false statements are printed")
    parser.add_argument("--words", type=Path, default=ROOT / "data/forge/sentences.json")
    options = parser.parse_args()
    Truth.grammar = grammar_of(options.words)
    try:
        rows = read_rows(options.rows)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    rows = [row for row in rows if text_of(row).strip()]
    rows = rows[:: max(1, len(rows) // options.texts)][: options.texts]
    counts: Counter[str] = Counter()
    by_kind: dict[str, Counter[str]] = {}
    by_sentence: dict[str, Counter[str]] = {}
    for row in rows:
        kind = by_kind.setdefault(row["kind"], Counter())
        kind["texts"] += 1
        bad = 0
        for truth in truths_of(row):
            for line in lines_of(truth.text):
                said = other_line(line, truth)
                verdict, names = (
                    ("true" if said else "false", ["other"])
                    if said is not None
                    else (verdict_of(line, truth))
                )
                counts[verdict] += 1
                kind[verdict] += 1
                bad += verdict == "false"
                by_sentence.setdefault("/".join(names) or "-", Counter())[verdict] += 1
                if verdict != "true" and counts[verdict] <= options.show:
                    print(f"{verdict}: {row['id']} {names}: {line}")
        kind["texts with a false one"] += bad > 0
        counts["texts with a false one"] += bad > 0
    for name, found in sorted(by_kind.items()):
        print(f"{name}: {dict(found)}")
    if options.show:
        for name, found in sorted(by_sentence.items()):
            print(f"  {name}: {dict(found)}")
    checked = counts["true"] + counts["false"]
    texts = "\n".join(map(text_of, rows)).encode()
    print(
        f"texts: {len(rows)}; checked statements a text: {checked / max(1, len(rows)):.1f}; "
        f"false: {counts['false']} in {counts['texts with a false one']} texts; "
        f"unchecked: {counts['unchecked'] + counts['no sentence']}"
    )
    packed = len(lzma.compress(texts, preset=9))
    print(
        f"bits a character by xz -9: {8 * packed / max(1, len(texts.decode())):.2f} "
        f"of {len(texts)} bytes"
    )
    return 1 if counts["false"] else 0


if __name__ == "__main__":
    sys.exit(main())
