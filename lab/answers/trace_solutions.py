#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Authors' solutions of flashinfer-trace and SOL-ExecBench, judged on the tasks of `import`.

    lab/answers/trace_solutions.py FOLDER --out OUT [--backend cpu] [--policy kernelbench]

OUT gets what `musacoder import FOLDER` writes, and in candidates/ each solution as a module with
ModelNew: a function of Python, or C++ and CUDA with a binding of PyTorch.  Prints the outcome of
each solution, or the reason for which it is no candidate.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from harness.importer import definitions  # noqa: E402
from harness.importer.sources import Refused  # noqa: E402

Json = dict[str, Any]
MODEL = """

class ModelNew(torch.nn.Module):
    def forward(self, {names}):
{body}
"""


def solutions_of(folder: Path) -> Iterator[tuple[Path, Json]]:
    for path in sorted(folder.rglob("*.json")):
        body = json.loads(path.read_text())
        if isinstance(body, dict) and body.keys() >= {"definition", "spec", "sources"}:
            yield path, body


def model_text(definition: Json, workload: Json, entry: str, is_destination: bool) -> str:
    """The text of the class ModelNew, which calls the solution's function."""
    given: list[str] = []
    names: list[str] = []
    places: dict[str, str] = {}  # The place of a size, by its axis.
    for name, tensor in definition["inputs"].items():
        source = workload["inputs"][name]
        if source["type"] == "scalar":
            given.append(repr(source["value"]))
            continue
        given.append(name)
        names.append(name)
        for index, axis in enumerate(tensor["shape"] or []):
            places.setdefault(axis, f"{name}.shape[{index}]")
    lines = []
    outputs = list(definition["outputs"]) if is_destination else []
    for name in outputs:
        tensor = definition["outputs"][name]
        shape = ", ".join(places[axis] for axis in tensor["shape"])
        lines.append(
            f"{name} = torch.empty(({shape},), dtype=torch.{tensor['dtype']}, "
            f"device={names[0]}.device)"
        )
    call = f"{entry}({', '.join(given + outputs)})"
    lines += [call, f"return {', '.join(outputs)}"] if outputs else [f"return {call}"]
    body = "\n".join(f"        {line}" for line in lines)
    return MODEL.format(names=", ".join(names), body=body)


def candidate_of(solution: Json, definition: Json, workload: Json) -> str:
    """The module.  Raises Refused."""
    spec = solution["spec"]
    texts = {source["path"]: source["content"] for source in solution["sources"]}
    path, entry = spec["entry_point"].split("::")
    is_destination = spec.get("destination_passing_style", True)
    if path.endswith(".py"):
        model = model_text(definition, workload, entry, is_destination)
        return f"{texts[path].rstrip()}\n{model}"
    if spec.get("binding") != "torch":
        raise Refused("its binding is not PyTorch's")
    for name, text in texts.items():
        for header, content in texts.items():
            text = text.replace(f'#include "{header}"\n', f"{content}\n")
        texts[name] = text
    by_kind = {
        "cuda_sources": [text for name, text in texts.items() if name.endswith(".cu")],
        "cpp_sources": [text for name, text in texts.items() if name.endswith(".cpp")],
        "extra_cuda_cflags": spec.get("compile_options", {}).get("cuda_cflags", []),
    }
    options = ",\n    ".join(f"{name}={value!r}" for name, value in by_kind.items())
    model = model_text(definition, workload, f"_extension.{entry}", is_destination)
    return (
        "import torch\nfrom torch.utils.cpp_extension import load_inline\n\n"
        f"_extension = load_inline(\n    name='solution',\n    {options},\n)\n{model}"
    )


def outcome_of(musacoder: str, task: Path, candidate: Path, options: list[str]) -> str:
    words = [musacoder, "eval", "--json", "--task", str(task), *options, str(candidate)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"not judged: {done.stderr.strip()}"
    return str(json.loads(done.stdout.splitlines()[0])["verdict"]["outcome"]["kind"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--musacoder", default=str(ROOT / "build/dev/bin/musacoder"))
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--policy", default="kernelbench")
    arguments = parser.parse_args()
    options = ["--backend", arguments.backend, "--policy", arguments.policy]
    command = [arguments.musacoder, "import", str(arguments.folder), "--out", str(arguments.out)]
    subprocess.run(command, check=True)
    candidates = arguments.out / "candidates"
    candidates.mkdir(exist_ok=True)
    known = {one.body["name"]: one for one in definitions.all_definitions(arguments.folder)}
    for path, solution in solutions_of(arguments.folder):
        definition = known[solution["definition"]]
        stem = re.sub(r"\W+", "_", solution["definition"])
        try:
            text = candidate_of(solution, definition.body, definition.workloads[0])
        except Refused as refused:
            print(f"{path}: no candidate: {refused}", flush=True)
            continue
        candidate = candidates / f"{stem}__{solution['name']}.py"
        candidate.write_text(text)
        task = arguments.out / f"tasks/{stem}.py"
        print(f"{path}: {outcome_of(arguments.musacoder, task, candidate, options)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
