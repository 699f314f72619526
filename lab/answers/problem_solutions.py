#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Authors' solutions of robust-kbench and reference-kernels, judged on the tasks of `import`.

    lab/answers/problem_solutions.py FOLDER --tasks OUT/tasks [--backend cpu] [--policy kernelbench]

FOLDER is the repository, OUT what `musacoder import FOLDER` wrote.  Prints the outcome of each
solution that is one source of CUDA with a forward, or a module with custom_kernel; and that of a
wrong mutant, in which the source's first += is -=.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from trace_solutions import outcome_of

LOAD = """_extension = load_inline(
    name='solution',
    cpp_sources='',
    cuda_sources=r'''{source}''',
)
"""
SUBMISSION = """

class ModelNew(torch.nn.Module):
    def forward(self, {names}):
        return custom_kernel(({names}))
"""


def solutions_of(folder: Path, tasks: Path) -> Iterator[tuple[Path, Path, str]]:
    """(file, task, candidate) of each solution."""
    for path in sorted(folder.rglob("*.cu")):
        name = path.parent.parent.name if path.name == "kernel.cu" else path.parent.name
        task = tasks / f"tasks_{name}_forward.py"
        if path.stem != "backward" and path.parent.name != "backward" and task.is_file():
            yield path, task, _of_source(path.read_text(), task.read_text())
    for path in sorted(folder.rglob("solutions/*/*.py")):
        problem = path.parent.parent.parent
        task = tasks / f"{problem.parent.name}_{problem.name}.py"
        if task.is_file():
            yield path, task, _of_submission(path.read_text(), task.read_text())


def _of_source(source: str, task: str) -> str:
    """The task's model, which calls the forward of the source."""
    tree = ast.parse(task)
    parts = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    (model,) = (node for node in tree.body if getattr(node, "name", "") == "Model")
    text = re.sub(r"\bModel\b", "ModelNew", ast.unparse(model))
    text = re.sub(r"\bfn=forward_fn\b", "fn=_extension.forward", text)
    imports = "\n".join(map(ast.unparse, parts))
    load = "from torch.utils.cpp_extension import load_inline\n\n" + LOAD.format(source=source)
    return f"{imports}\n{load}\n\n{text}\n"


def _of_submission(text: str, task: str) -> str:
    names = re.search(r"class Model\(.*\n    def forward\(self, (.*)\):", task)
    assert names is not None
    text = re.sub(r"^from (task|utils) import .*\n", "", text, flags=re.MULTILINE)
    head = "import torch\ninput_t = output_t = object\n"
    return head + text + SUBMISSION.format(names=names[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--musacoder", default="build/dev/bin/musacoder")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--policy", default="kernelbench")
    arguments = parser.parse_args()
    options = ["--backend", arguments.backend, "--policy", arguments.policy]
    candidates = arguments.tasks.parent / "candidates"
    candidates.mkdir(exist_ok=True)
    for number, (path, task, text) in enumerate(solutions_of(arguments.folder, arguments.tasks)):
        outcomes = []
        for kind, given in (("as written", text), ("mutant", text.replace("+=", "-=", 1))):
            if kind == "as written" or given != text:
                candidate = candidates / f"{number}_{kind.split()[-1]}.py"
                candidate.write_text(given)
                outcome = outcome_of(arguments.musacoder, task, candidate, options)
                outcomes.append(f"{kind} {outcome}")
        print(f"{path.relative_to(arguments.folder)}: {', '.join(outcomes)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
