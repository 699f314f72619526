# SPDX-License-Identifier: Apache-2.0
"""Indigo3: whole programs, of several kernels and loops of the host, with the suite's labels.

There is no reference, so that the task is a copy of its input and only findings count, and no
oracle. The labels are corrected by a reading of the programs: some bugs cannot show, and these are
not chosen; some programs have faults that no label names, and these are weak.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cases import GRAPHS, Case, Graph, Verdict, grouped, spread

COMMIT = "f351177"
THREADS = 64
NUM_PERSISTENT_BLOCKS = 4
GRAPH = GRAPHS["hub"]
# Programs of a selection by their only bug, "none" without any.
NUM_PROGRAMS = {
    "none": 24,
    "RaceBug": 10,
    "SyncBug": 6,
    "BoundsBug": 3,
    "ExcessThreadsBug": 4,
    "NbrBoundsBug": 4,
    "FieldBug": 2,
    "UninitializedBug": 3,
}
SHOWS = {
    "none": (),
    "RaceBug": ("global_race", "shared_race"),
    "SyncBug": ("shared_race", "uninitialised_shared"),
    "UninitializedBug": ("uninitialised_global",),
}

# The host's part, which the suite's main() has otherwise.
RUN = {
    "BFS": "std::vector<basic_t> distance(N); GPUbfs_vertex(50, device, distance.data());",
    "CC": "std::vector<basic_t> label(N); GPUcc_vertex(device, label.data());",
    "MIS": "std::vector<data_type> priority(N); std::vector<int> status(N);\n"
    "  GPUmis_vertex(device, priority.data(), status.data());",
    "TC": "basic_t count = 0; GPUtc_vertex(&count, N, device.nindex, device.nlist);",
    "PR": "std::vector<int> degree(N); std::vector<data_type> scores(N, data_type(1) / N);\n"
    "  for (int v = 0; v < N; ++v) degree[v] = INDEX[v + 1] - INDEX[v];\n"
    "  PR_GPU(host, scores.data(), degree.data());",
}

PROGRAM = """#include <torch/extension.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
struct ECLgraph {{
  int nodes;
  int edges;
  int* nindex;
  int* nlist;
  int* eweight;
}};
{text}
static int INDEX[] = {{{index}}};
static int NEIGHBORS[] = {{{neighbors}}};
constexpr int N = {vertices};
void run() {{
  ECLgraph host{{N, {edges}, INDEX, NEIGHBORS, nullptr}}, device = host;
  cudaMalloc(&device.nindex, sizeof INDEX);
  cudaMalloc(&device.nlist, sizeof NEIGHBORS);
  cudaMemcpy(device.nindex, INDEX, sizeof INDEX, cudaMemcpyHostToDevice);
  cudaMemcpy(device.nlist, NEIGHBORS, sizeof NEIGHBORS, cudaMemcpyHostToDevice);
  {run}
  cudaFree(device.nindex);
  cudaFree(device.nlist);
}}
"""

TASK = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.clone()


def get_inputs():
    return [torch.rand(4096)]


def get_init_inputs():
    return []
"""

ANSWER = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
{program}
"""
ext = load_inline("indigo3", cpp_sources="void run();", cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        ext.run()
        return x.clone()
'''


@dataclass(frozen=True)
class Program:
    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def tags(self) -> list[str]:
        return self.name.split("_")

    @property
    def algorithm(self) -> str:
        return self.tags[0]

    @property
    def worker(self) -> str:
        return next((tag for tag in self.tags if tag in ("Thread", "Warp", "Block")), "")

    @property
    def bugs(self) -> str:
        found = [tag for tag in self.tags if tag.endswith("Bug") and not tag.startswith("No")]
        return "+".join(found) or "none"

    def text(self, library: Path) -> str:
        """The program and its headers in one, without the host's main() and with small blocks."""
        text = _without_comment(self.path.read_text())
        include = re.compile(r'^#include "(.*)"', re.MULTILINE)
        for _ in range(2):  # Its header, and the header's.
            text = include.sub(lambda one: _header(library, one[1]), text)
        text = re.sub(r"^static int GPUinfo\(.*?^\}", "", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"^int main\(.*?^\}", "", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"(ThreadsPerBlock =) \d+;", rf"\1 {THREADS};\n{_GPU_INFO}", text)
        # The host's loops end by what a kernel wrote, and after a fault never.
        ends = r"} while (\1 && cudaPeekAtLastError() == cudaSuccess);"
        text = re.sub(r"\} while (\(.*\));", ends, text)
        return re.sub(r'^ *printf\(".*$', "", text, flags=re.MULTILINE)

    def answer(self, library: Path, graph: Graph) -> str:
        program = PROGRAM.format(
            text=self.text(library),
            index=", ".join(map(str, graph.index)),
            neighbors=", ".join(map(str, graph.neighbors)),
            vertices=graph.num_vertices,
            edges=len(graph.neighbors),
            run=RUN[self.algorithm],
        )
        return ANSWER.format(program=program)


_GPU_INFO = f"static int GPUinfo(int, bool = true) {{ return {NUM_PERSISTENT_BLOCKS * THREADS}; }}"


def _without_comment(text: str) -> str:
    return re.sub(r"\A\s*/\*.*?\*/", "", text, flags=re.DOTALL)


def _header(library: Path, name: str) -> str:
    """ECLgraph.h reads files, and csort.h sorts times: the host's main() alone uses them."""
    if name in ("ECLgraph.h", "csort.h"):
        return ""
    return _without_comment((library / name).read_text())


def is_hidden(program: Program) -> bool:
    """True for a bug that cannot show: with this graph, or beside the program's other code."""
    tags, bug = program.tags, program.bugs
    is_full = "NonPersist" in tags and program.worker != "Thread"  # The vertices fill all blocks.
    if bug in ("BoundsBug", "FieldBug") and "Data" in tags:
        return True  # The worklist has room for an entry more, which is an old one.
    if bug in ("ExcessThreadsBug", "FieldBug"):
        return is_full
    if bug == "SyncBug" and program.algorithm == "PR":
        is_again = "Persist" in tags and program.worker == "Block"
        return "BlockAdd" not in tags and not is_again  # A buffer that is used once.
    return False


def _faults_of_all(program: Program) -> set[str]:
    """Faults that the suite has in programs of a kind, labelled or not."""
    tags = program.tags
    if program.algorithm == "TC":
        # A warp sums all words of s_buffer, of which each warp of the block wrote one.
        return {"uninitialised_shared"} if "Reduction" in tags else set()
    if program.algorithm != "PR":
        return set()
    kinds = set()
    if "NonDeterm" in tags or ("Push" in tags and program.worker != "Thread"):
        kinds.add("global_race")  # Scores that others read; scores that all lanes update.
    if "Pull" in tags and "BlockAdd" in tags:
        kinds.add("shared_race")  # All threads read local_diff, with no barrier before.
    if "Reduction" in tags and ("Persist" in tags or program.worker == "Block"):
        kinds.add("shared_race")  # The buffer of one reduction is that of the next.
    if "Reduction" in tags and program.worker == "Thread":
        # Barriers and shuffles of a whole block, where threads beyond the vertices left.
        kinds |= {"deadlock", "divergent_barrier", "shuffle_source"}
    return kinds


def truth_of(program: Program) -> Verdict:
    shows = SHOWS.get(program.bugs, ("out_of_bounds",))
    return Verdict(shows, tuple(sorted(_faults_of_all(program))))


def generate(checkout: Path, folder: Path) -> list[Program]:
    """The programs with bugs too: the suite's generator in a copy with another configuration."""
    shutil.copytree(checkout, folder, ignore=shutil.ignore_patterns(".git", "inputs"))
    configuration = folder / "codeGen/configure.txt"
    configuration.write_text(configuration.read_text().replace("{nobug}", "{all}"))
    for algorithm in RUN:
        command = [sys.executable, "-W", "ignore", "generate_all_codes.py", "cuda", algorithm]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    found = sorted(folder.glob("generatedCodes/CUDA/*/*.cu"))
    return [Program(path) for path in found if path.stem.startswith("PR_") or "_V_" in path.stem]


def select(programs: list[Program], seed: int) -> list[Program]:
    draw = random.Random(seed)
    by_bugs = grouped((one.bugs, one) for one in programs if not is_hidden(one))
    chosen = []
    for bugs, count in NUM_PROGRAMS.items():
        groups = grouped((f"{one.algorithm} {one.worker}", one) for one in by_bugs[bugs])
        chosen += spread(groups, count, draw)
    return chosen


def cases(checkout: Path, folder: Path, seed: int) -> Iterator[Case]:
    copy = folder / "suite3"
    shutil.rmtree(copy, ignore_errors=True)
    for program in select(generate(checkout, copy), seed):
        answer = program.answer(copy / "lib", GRAPH)
        yield Case(program.name, program.bugs, TASK, answer, truth_of(program))
