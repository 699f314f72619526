# SPDX-License-Identifier: Apache-2.0
"""IndigoSuite: kernels over graphs, each with a reference and what the oracle says of it."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cases import GRAPHS, Case, Graph, Verdict, grouped, spread

COMMIT = "c95ac19"
HERE = Path(__file__).parent
THREADS = 64
BUGS = ("atomicBug", "boundsBug", "guardBug", "raceBug", "syncBug")
# Shares of those with a bug in a selection, of 60.
BUG_SHARES = {
    "atomicBug": 9,
    "boundsBug": 7,
    "syncBug": 5,
    "guardBug": 4,
    "raceBug": 2,
    "guardBug+atomicBug": 2,
    "boundsBug+atomicBug": 1,
}

# Statements of a pattern for edge j of vertex i, to its neighbor. a and b are data1, data2.
STATEMENTS = {
    "conditional_edge": "a[0] = max(a[0], b[nei])",
    "conditional_vertex": "a[0] += 1",
    "populate_worklist": "a[b[0]] = j; b[0] += 1",
    "pull_node": "a[i] += b[nei]",
    "push_node": "a[nei] = min(a[nei], b[i])",
}
ALWAYS_CONDITIONAL = ("conditional_vertex", "populate_worklist")

TASK = """import torch
import torch.nn as nn

# Text: literals would count as sizes.
INDEX, NEIGHBORS = ([int(x) for x in text.split()] for text in ({index!r}, {neighbors!r}))


class Model(nn.Module):
    def forward(self, nindex, nlist, data1, data2):
        nindex, nlist, a, b = (x.tolist() for x in (nindex, nlist, data1, data2))
        for i in range(len(nindex) - 1):
{body}
        a, b = (torch.tensor(x, dtype=torch.int64).to(torch.int32) for x in (a, b))
        return a{sort}, b


def get_inputs():
    vertices, edges = len(INDEX) - 1, len(NEIGHBORS)
    size = max(vertices, edges)
    data1 = torch.randint(0, vertices, (size,), dtype=torch.int32)
    data2 = torch.randint(0, max(1, edges), (size,), dtype=torch.int32)
    data1[0] = data2[0] = 0
    return [torch.tensor(x, dtype=torch.int32) for x in (INDEX, NEIGHBORS)] + [data1, data2]


def get_init_inputs():
    return []
"""

ANSWER = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
{kernel}
void run(torch::Tensor nindex, torch::Tensor nlist, torch::Tensor data1, torch::Tensor data2) {{
  test_kernel<<<{blocks}, {threads}>>>(nindex.data_ptr<int>(), nlist.data_ptr<int>(),
                                       data1.data_ptr<int>(), data2.data_ptr<int>(),
                                       static_cast<int>(nindex.numel()) - 1);
}}
"""
header = "void run(torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor);"
ext = load_inline("indigo", cpp_sources=header, cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, nindex, nlist, data1, data2):
        a, b = data1.clone(), data2.clone()
        ext.run(nindex, nlist, a, b)
        return a{sort}, b
'''


@dataclass(frozen=True)
class Variant:
    name: str
    text: str

    @property
    def pattern(self) -> str:
        return next(p for p in (*STATEMENTS, "path_compression") if self.name.startswith(p))

    @property
    def tags(self) -> list[str]:
        return self.name.removeprefix(self.pattern).split("_")

    @property
    def worker(self) -> str:
        """The unit of threads that works on a vertex."""
        return next((w for w in ("block", "warp") if w in self.tags), "thread")

    @property
    def bugs(self) -> str:
        return "+".join(tag for tag in self.tags if tag in BUGS) or "none"

    @property
    def kernel(self) -> str:
        text = re.sub(r"\A/\*.*?\*/", "", self.text, flags=re.DOTALL)
        text = text[: text.index("void serial_code")]
        return text.replace('#include "indigo_cuda.h"', "").strip()

    @property
    def sort(self) -> str:
        """The order in a worklist is free."""
        return ".sort().values" if self.pattern == "populate_worklist" else ""

    def num_blocks(self, graph: Graph) -> int:
        """More threads than vertices; several vertices for a thread where they are persistent."""
        if "persistent" in self.tags:
            return 7 if self.worker == "block" else 1 if self.worker == "thread" else 3
        threads = {"block": THREADS, "warp": 32, "thread": 1}[self.worker]
        return graph.num_vertices * threads // THREADS + 2

    def _body(self) -> Iterator[str]:
        if self.pattern == "path_compression":
            yield "v = i"
            yield "while v > a[v]: v = a[v]"
            yield f"{'b' if 'traverse' in self.tags else 'a'}[i] = v"
            return
        yield "edges = range(nindex[i], nindex[i + 1])"
        if "reverse" in self.tags or "last" in self.tags:
            yield "edges = edges[::-1]"
        if "neighbor" in self.tags:
            yield "edges = edges[:1]"
        yield "for j in edges:"
        yield "    nei = nlist[j]"
        if "cond" in self.tags or self.pattern in ALWAYS_CONDITIONAL:
            yield "    if not i < nei: continue"
        yield f"    {STATEMENTS[self.pattern]}"
        if "break" in self.tags:
            yield "    break"

    def task(self, graph: Graph) -> str:
        body = "\n".join(" " * 12 + line for line in self._body())
        index, neighbors = (" ".join(map(str, x)) for x in (graph.index, graph.neighbors))
        return TASK.format(index=index, neighbors=neighbors, body=body, sort=self.sort)

    def answer(self, graph: Graph) -> str:
        blocks = self.num_blocks(graph)
        return ANSWER.format(kernel=self.kernel, blocks=blocks, threads=THREADS, sort=self.sort)

    def oracle(self) -> str:
        """The program that judges this variant, for oracle.h."""
        text = re.sub(r"\b(int|data_t)\s*\*", r"Array<\1>", self.kernel)
        shared = r"__shared__\s+(\w+)\s+(\w+)\[(\w+)\];"
        text = re.sub(shared, r"Array<\1> \2 = shared<\1>(__LINE__, \3);", text)
        return f'#include "oracle.h"\n{text}\nint main() {{ return oracle::run(test_kernel); }}\n'


def generate(checkout: Path, folder: Path) -> list[Variant]:
    """All variants with elements of type int, by the suite's generator."""
    generators = checkout.resolve() / "Generators"
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(generators.glob("CUDA_sources/*.idg")):
        script = [sys.executable, "-W", "ignore", "generate_CUDA_codes.py"]
        where = [f"CUDA_sources/{source.name}", "../copyright.txt", str(folder.resolve())]
        subprocess.run([*script, *where], cwd=generators, check=True, stdout=subprocess.DEVNULL)
    return [Variant(path.stem, path.read_text()) for path in sorted(folder.rglob("*.cu"))]


def select(variants: list[Variant], count: int, seed: int) -> list[Variant]:
    """Half of them without a bug; patterns and workers by turns."""
    draw = random.Random(seed)
    chosen = []
    by_bugs = grouped((one.bugs, one) for one in variants)
    for bugs, share in {"none": 30, **BUG_SHARES}.items():
        groups = grouped((f"{one.pattern} {one.worker}", one) for one in by_bugs[bugs])
        chosen += spread(groups, round(share * count / 60), draw)
    return chosen


class Oracle:
    """Compiles a variant once, and runs it for each graph."""

    def __init__(self, variant: Variant, folder: Path) -> None:
        source, self._variant = folder / "oracle.cc", variant
        self._program = folder / "oracle"
        source.write_text(variant.oracle())
        compiler = ["g++", "-std=c++20", "-w", f"-I{HERE}", str(source), "-o", str(self._program)]
        subprocess.run(compiler, check=True)

    def verdict(self, graph: Graph) -> Verdict:
        arrays = (f"{len(x)} " + " ".join(map(str, x)) for x in (graph.index, graph.neighbors))
        text = " ".join([str(self._variant.num_blocks(graph)), str(THREADS), *arrays])
        command = [str(self._program)]
        ran = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        found = json.loads(ran.stdout)
        return Verdict(tuple(found["shows"]), tuple(found["weak"]))


def graphs_of(variant: Variant) -> tuple[str, ...]:
    if variant.bugs == "none":
        return ("hub",)
    meets_once = variant.bugs in ("atomicBug", "raceBug") and variant.worker != "block"
    return ("hub", "path", "two_warps", "one_warp") if meets_once else ("hub", "path")


def cases(checkout: Path, folder: Path, count: int, seed: int) -> Iterator[Case]:
    for variant in select(generate(checkout, folder / "suite"), count, seed):
        oracle = Oracle(variant, folder)
        for name in graphs_of(variant):
            graph = GRAPHS[name]
            task, answer = variant.task(graph), variant.answer(graph)
            truth = oracle.verdict(graph)
            yield Case(f"{variant.name}@{name}", variant.bugs, task, answer, truth)
