#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the texts of `musacoder forge` state against the code of the same row.

  tools/text_truth.py data/sft.jsonl --texts 500        # 1 where a statement is false
  tools/text_truth.py data/sft.jsonl --show 20          # the false ones, and what was not checked

The grammar gives the slots of a line (src/forge/words.cc); whether they hold is decided here from
the row alone: the module of the task gives shapes, and the threads of the kernels run in Python
(kernel_trace.py). It needs PyTorch. The last line is the bits a character by `xz -9`.
"""

from __future__ import annotations

import argparse
import ast
import json
import lzma
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from kernel_trace import NotUnderstood, Program, Trace, program_of  # noqa: E402

Slots = dict[str, str]
ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"```python\n(.*?)```\n?", re.DOTALL)
NUMBERS = {"count", "k", "kernels", "threads", "warps", "offset", "blocks", "idle", "full", "block",
           "rest", "read", "written", "bytes", "needed", "flops", "ways", "stores", "loads",
           "percent", "sectors", "shared", "registers", "ours", "theirs", "n", "m", "place",
           "thread", "all", "row", "line", "barriers", "launches", "saved",
           "size", "value", "rate"}  # fmt: skip


def grammar_of(path: Path) -> dict[str, list[re.Pattern[str]]]:
    """The forms of each sentence in words.cc, as patterns with a group for each slot."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    grammar: dict[str, list[re.Pattern[str]]] = {}
    for match in re.finditer(r'\{"(\w+)",\s*\{((?:\s*"(?:[^"\\]|\\.)*"\s*,?)+)\}\}', text):
        forms = []
        for literal in re.findall(r'((?:"(?:[^"\\]|\\.)*"\s*)+)', match.group(2)):
            form = "".join(ast.literal_eval(one) for one in re.findall(r'"(?:[^"\\]|\\.)*"', literal))
            forms.append(pattern_of(form))
        grammar[match.group(1)] = forms
    return grammar


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
        "".join(re.sub(r"\{(\w+)\}", group, p) if p.startswith("{") else re.escape(p) for p in parts)
    )


def numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"-?\d+", text)]


def code_blocks(messages: list[dict[str, str]]) -> list[str]:
    return [code for message in messages for code in FENCE.findall(message["content"])]


class Unknown(Exception):
    """A statement that the row does not decide."""


class Truth:
    """What is true of a row."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.messages = row["messages"]
        blocks = code_blocks(self.messages)
        self.reference = blocks[0] if blocks else ""
        self.text = FENCE.sub("", self.messages[-1]["content"])
        given = code_blocks(self.messages[:-1])
        # A review or a diagnosis is of the answer before it, all else of the answer itself.
        self.failed = given[-1] if len(given) > 1 else ""
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
                raise Unknown from error
        return self.made

    def trace(self, launch: int, block: tuple[int, ...], thread: tuple[int, ...]) -> Trace:
        key = (launch, block, thread)
        if key not in self.traces:
            try:
                self.traces[key] = self.program().run_thread(launch, block, thread)
            except NotUnderstood as error:
                raise Unknown from error
        return self.traces[key]

    # ---- Parts: a kernel of the plan may be two launches, the second of which ends with _finish

    def launch_of(self, k: str) -> int:
        firsts = [i for i, one in enumerate(self.program().launches)
                  if not one.kernel.endswith("_finish")]  # fmt: skip
        if not 1 <= int(k) <= len(firsts):
            raise AssertionError("there is no such kernel")
        return firsts[int(k) - 1]

    def host(self, k: str, name: str) -> int:
        variables = self.program().host_variables[self.launch_of(k)]
        if name not in variables:
            raise Unknown
        return variables[name]

    def geometry(self, k: str) -> tuple[int, int]:
        launch = self.program().launches[self.launch_of(k)]
        return math.prod(launch.grid), math.prod(launch.block)

    def barriers(self, launch: int) -> int:
        one = self.program().launches[launch]
        return self.trace(launch, (0,) * len(one.grid), (0,) * len(one.block)).barriers

    def tensors(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for launch in self.program().launches:
            for argument in launch.arguments:
                if hasattr(argument, "shape"):
                    found[argument.name] = argument
        return found

    # ---- Sentences of all versions

    def kernels(self, s: Slots) -> bool:
        return int(s["kernels"]) == len(self.program().launches)

    def run(self, s: Slots) -> bool:
        return self.host(s["k"], s["name"]) == int(s["value"])

    def block(self, s: Slots) -> bool:
        threads = self.geometry(s["k"])[1]
        return threads == int(s["threads"]) and math.ceil(threads / 32) == int(s["warps"])

    def tail(self, s: Slots) -> bool:
        """The last block of some launch has `rest` threads with work, and a check stops the rest."""
        value, full, block, rest = (int(s[name]) for name in ("value", "full", "block", "rest"))
        if full * block + rest != value:
            return False
        for number, launch in enumerate(self.program().launches):
            blocks, threads = math.prod(launch.grid), math.prod(launch.block)
            is_covered = self.program().host_variables[number].get("n") == value
            if threads == block and is_covered and blocks == full + (rest > 0):
                return self.is_checked(number)
        return False

    def is_checked(self, number: int) -> bool:
        launch = self.program().launches[number]
        body = self.program().texts[launch.kernel]
        return re.search(r"(if|for) \([^;{]*(<|>=) *\(?[nN]\b", body) is not None or bool(
            re.search(r"; [^;]*< n\b", body)
        )

    def tensor(self, s: Slots) -> bool:
        sizes = numbers(s["sizes"])
        if math.prod(sizes) != int(s["count"]):
            return False
        known = self.tensors()
        if s["name"] not in known:
            raise Unknown
        return bool(sizes == known[s["name"]].shape)

    def extent(self, s: Slots) -> bool:
        constants = {name: int(value) for name, value in
                     re.findall(r"^(\w+) = (\d+)$", self.reference, re.MULTILINE)}  # fmt: skip
        try:
            value = eval(s["extent"].replace("/", "//"), {}, constants)  # noqa: S307
        except (NameError, SyntaxError) as error:
            raise Unknown from error
        return bool(value == int(s["size"]))

    def strides(self, s: Slots) -> bool:
        known = self.tensors()
        strides, index = numbers(s["strides"]), numbers(s["index"])
        if sum(a * b for a, b in zip(strides, index)) != int(s["offset"]):
            return False
        if s["name"] not in known:
            raise Unknown
        shape = known[s["name"]].shape
        return len(index) == len(shape) and all(0 <= a < b for a, b in zip(index, shape))

    def largest(self, s: Slots) -> bool:
        most = max(one.numel() for one in self.tensors().values())
        return most <= int(s["count"]) < 2**31

    def traffic(self, s: Slots) -> bool:
        """All threads of a launch, where they are few enough."""
        loaded, stored = self.moved(self.launch_of(s["k"]))
        return loaded == int(s["read"]) and stored == int(s["written"])

    def moved(self, launch: int) -> tuple[int, int]:
        """Bytes that all threads load and store."""
        one = self.program().launches[launch]
        if math.prod(one.grid) * math.prod(one.block) > 6000:
            raise Unknown
        loaded = stored = 0
        for block in places(one.grid):
            for thread in places(one.block):
                trace = self.trace(launch, block, thread)
                loaded += sum(size for _, _, size in trace.loads)
                stored += sum(size for _, _, size in trace.stores)
                if loaded > 4_000_000:
                    raise Unknown
        return loaded, stored

    def total(self, s: Slots) -> bool:
        moved = [self.moved(i) for i in range(len(self.program().launches))]
        return sum(a + b for a, b in moved) == int(s["bytes"])

    def intensity(self, s: Slots) -> bool:
        if abs(int(s["flops"]) / int(s["bytes"]) - float(s["ratio"])) > 0.005001:
            return False
        loaded, stored = self.moved(self.launch_of(s["k"]))
        return loaded + stored == int(s["bytes"])

    def occupancy(self, s: Slots) -> bool:
        asked = self.messages[-2]["content"]
        found = re.findall(r"(\d+) registers, (\d+) bytes smem", asked)
        if found:  # A profile: one of its kernels.
            return any(self.has_occupancy(s, int(a), int(b)) for a, b in found)
        registers = self.asked_number("ask_occupancy", "registers")
        shared = self.asked_number("ask_occupancy", "shared")
        return self.has_occupancy(s, registers, shared)

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

    def asked_number(self, sentence: str, slot: str) -> int:
        return int(self.asked(sentence)[slot])

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
    """"true", "false", "unchecked" or "no sentence", and the sentences that the line may be."""
    found: list[bool] = []
    names: list[str] = []
    for name, forms in truth.grammar.items():
        for form in forms:
            match = form.fullmatch(line)
            if match is None:
                continue
            names.append(name)
            check = getattr(truth, name, None)
            if check is None:
                continue
            try:
                found.append(bool(check(match.groupdict())))
            except Unknown:
                continue
            except (AssertionError, ValueError):
                found.append(False)
    if not names:
        return "no sentence", names
    if not found:
        return "unchecked", names
    return ("true" if any(found) else "false"), names


def report_line(line: str, code: str) -> bool | None:
    """"Line 8: text" of a review or a diagnosis; None of other lines."""
    match = re.fullmatch(r"(?:Line|In line) (\d+): (.*)", line)
    if match is None:
        return None
    lines = code.split("\n")
    number = int(match.group(1))
    return number <= len(lines) and lines[number - 1].strip() == match.group(2).strip()


def lines_of(text: str) -> list[str]:
    cleaned = (re.sub(r"^(\d+\.|-| ) *", "", line.strip()) for line in text.split("\n"))
    return [line for line in cleaned if line and line not in ("<think>", "</think>")]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--show", type=int, default=0, help="how many false statements are printed")
    parser.add_argument("--words", type=Path, default=ROOT / "src/forge/words.cc")
    options = parser.parse_args()
    Truth.grammar = grammar_of(options.words)
    rows = [json.loads(line) for line in options.rows.open()]
    rows = [row for row in rows if FENCE.sub("", row["messages"][-1]["content"]).strip()]
    rows = rows[:: max(1, len(rows) // options.texts)][: options.texts]
    counts: Counter[str] = Counter()
    by_kind: dict[str, Counter[str]] = {}
    by_sentence: dict[str, Counter[str]] = {}
    shown = 0
    for row in rows:
        truth = Truth(row)
        kind = by_kind.setdefault(row["kind"], Counter())
        kind["texts"] += 1
        bad = 0
        for line in lines_of(truth.text):
            said = report_line(line, truth.failed)
            verdict, names = ("true" if said else "false", ["line"]) if said is not None else (
                verdict_of(line, truth))  # fmt: skip
            counts[verdict] += 1
            kind[verdict] += 1
            bad += verdict == "false"
            by_sentence.setdefault("/".join(names) or "-", Counter())[verdict] += 1
            if verdict == "false" and shown < options.show:
                shown += 1
                print(f"{row['id']} {names}: {line}")
            if verdict == "no sentence" and options.show and counts[verdict] <= options.show:
                print(f"{row['id']} no sentence: {line}")
        kind["texts with a false one"] += bad > 0
        counts["texts with a false one"] += bad > 0
    for name, found in sorted(by_kind.items()):
        print(f"{name}: {dict(found)}")
    if options.show:
        for name, found in sorted(by_sentence.items()):
            print(f"  {name}: {dict(found)}")
    checked = counts["true"] + counts["false"]
    texts = "\n".join(FENCE.sub("", row["messages"][-1]["content"]) for row in rows).encode()
    print(f"texts: {len(rows)}; checked statements a text: {checked / max(1, len(rows)):.1f}; "
          f"false: {counts['false']} in {counts['texts with a false one']} texts; "
          f"unchecked: {counts['unchecked'] + counts['no sentence']}")  # fmt: skip
    packed = len(lzma.compress(texts, preset=9))
    print(f"bits a character by xz -9: {8 * packed / max(1, len(texts.decode())):.2f} "
          f"of {len(texts)} bytes")  # fmt: skip
    return 1 if counts["false"] else 0


if __name__ == "__main__":
    sys.exit(main())
